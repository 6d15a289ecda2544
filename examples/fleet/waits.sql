-- waits: storage wait of each trace: the measure of the union of [arrival, completion] of its foreground I/Os.
-- Never a sum of latencies: in order of arrival, each I/O adds what lies beyond all completions before it.
SELECT machine, trace,
       CAST(SUM(GREATEST(0, complete_ns - GREATEST(arrival_ns, COALESCE(reach_ns, arrival_ns)))) AS BIGINT)
         AS storage_wait_ns
FROM (
  SELECT machine, trace, arrival_ns, complete_ns,
         MAX(complete_ns) OVER (PARTITION BY machine, trace ORDER BY arrival_ns
                                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach_ns
  FROM ios
  WHERE is_foreground AND complete_ns >= arrival_ns
) AS waiting
GROUP BY machine, trace
