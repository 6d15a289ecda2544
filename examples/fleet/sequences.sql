-- sequences: of each trace, how many data requests begin exactly where the one before on the same device ended, in order
-- of issue; equal times keep the order of the trace (docs/metrics.md, "Addresses").
SELECT machine, trace, CAST(SUM(CASE WHEN lba = end_before THEN 1 ELSE 0 END) AS BIGINT) AS sequential
FROM (
  SELECT machine, trace, lba,
         LAG(lba + CAST(FLOOR(bytes / 512) AS BIGINT)) OVER (PARTITION BY machine, trace, device
                                                           ORDER BY start_ns, file_row_number) AS end_before
  FROM ios
  WHERE is_data AND lba IS NOT NULL
) AS following
GROUP BY machine, trace
