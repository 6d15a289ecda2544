-- size_histogram: by machine, data requests by exact size (docs/metrics.md, "Sizes").
SELECT machine, bytes, COUNT(*) AS requests,
       CAST(SUM(CASE WHEN op = 'read' THEN 1 ELSE 0 END) AS BIGINT) AS reads,
       CAST(SUM(CASE WHEN op = 'write' THEN 1 ELSE 0 END) AS BIGINT) AS writes
FROM ios
WHERE is_data
GROUP BY machine, bytes
ORDER BY machine, bytes
