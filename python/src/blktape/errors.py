"""What can go wrong with a trace as a whole. What is missing in one is no error but a Loss."""


class TraceError(Exception):
    """The file is no trace, or its header is unreadable. The message names file, place and reason."""


class NewerFormatError(TraceError):
    """Its format version is above what this package reads, or it needs something that this package does not know."""


class BatchError(Exception):
    """A batch of records that contradicts itself. Its frame is damage: the reader reports it as a loss."""
