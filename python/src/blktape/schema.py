"""The messages of format/trace.proto.

trace.binpb is that file as protoc describes it; python/README.md says how it is made anew. The messages live in a
pool of their own, so that a program may also use a trace_pb2 that it generated itself, of whatever version.
"""

from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _load() -> Any:
    described = descriptor_pb2.FileDescriptorSet.FromString(
        resources.files("blktape").joinpath("trace.binpb").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in described.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = _load()
_PACKAGE = "blktape.proto."

Message: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName(_PACKAGE + "Message"))

_LOSS_REASONS = POOL.FindEnumTypeByName(_PACKAGE + "LossReason")
_MARK_KINDS = POOL.FindEnumTypeByName(_PACKAGE + "MarkKind")


def loss_reason_name(number: int) -> str:
    """RING_OVERRUN ..., as in trace.proto; the number as text where this version has no name for it."""
    known = _LOSS_REASONS.values_by_number.get(number)
    return known.name if known is not None else str(number)


def mark_kind_name(number: int) -> str:
    """SUSPEND ..., likewise."""
    known = _MARK_KINDS.values_by_number.get(number)
    return known.name if known is not None else str(number)
