-- ios: the records, as the other queries want them. Reads `records`, the Parquet dataset, with a column file_row_number,
-- which DuckDB and Spark each have their own word for: the order of the trace.
--   arrival_ns      queue time, without one issue time (docs/metrics.md, "Terms")
--   start_ns        issue time, without one queue time
--   is_data         a read or write of more than 0 bytes
--   is_foreground   what a person waits for: reads, writes with sync, fua or preflush (bits 0 to 2 of flags), and
--                   flushes that somebody asked for, not those derived from a flagged write (bit 5)
-- A time beyond 2^60 ns on either side of 0 is taken as absent.
SELECT machine, trace, file_row_number, device, op, bytes, lba, queue_ns, issue_ns, complete_ns,
       COALESCE(queue_ns, issue_ns) AS arrival_ns,
       COALESCE(issue_ns, queue_ns) AS start_ns,
       op IN ('read', 'write') AND bytes > 0 AS is_data,
       (op IN ('read', 'flush') OR (op = 'write' AND (flags & 7) <> 0)) AND (flags & 32) = 0 AS is_foreground
FROM (
  SELECT machine, trace, file_row_number, CAST(device AS STRING) AS device, CAST(op AS STRING) AS op,
         TRY_CAST(bytes AS BIGINT) AS bytes, TRY_CAST(lba AS BIGINT) AS lba, CAST(flags AS BIGINT) AS flags,
         CASE WHEN queue_ns BETWEEN -1152921504606846976 AND 1152921504606846976 THEN queue_ns END AS queue_ns,
         CASE WHEN issue_ns BETWEEN -1152921504606846976 AND 1152921504606846976 THEN issue_ns END AS issue_ns,
         CASE WHEN complete_ns BETWEEN -1152921504606846976 AND 1152921504606846976 THEN complete_ns END AS complete_ns
  FROM records
) AS plain
