-- figures: a row a trace, from which storage_wait.sql and the choice of representatives go on.
SELECT t.machine, t.trace, t.lost_events, t.lost_events_is_lower_bound, t.finished_cleanly,
       COALESCE(f.ios, 0) AS ios,
       COALESCE(f.data_requests, 0) AS data_requests,
       -- As docs/score.md has it: how long was recorded where the trace tells, at least from the first arrival to the end.
       GREATEST(COALESCE(t.recorded_ns, 0), COALESCE(f.observed_ns, 0)) AS recorded_ns,
       COALESCE(w.storage_wait_ns, 0) AS storage_wait_ns,
       COALESCE(s.sequential, 0) AS sequential,
       f.reads, f.flushes, f.up_to_4k, f.up_to_16k, f.up_to_64k, f.up_to_256k, f.bytes, f.mean_ln_d2c
FROM traces AS t
LEFT JOIN (
  SELECT machine, trace,
         COUNT(*) AS ios,
         CAST(SUM(CASE WHEN is_data THEN 1 ELSE 0 END) AS BIGINT) AS data_requests,
         MAX(GREATEST(arrival_ns, COALESCE(complete_ns, arrival_ns))) - MIN(arrival_ns) AS observed_ns,
         CAST(SUM(CASE WHEN is_data AND op = 'read' THEN 1 ELSE 0 END) AS BIGINT) AS reads,
         CAST(SUM(CASE WHEN op = 'flush' THEN 1 ELSE 0 END) AS BIGINT) AS flushes,
         CAST(SUM(CASE WHEN is_data AND bytes <= 4096 THEN 1 ELSE 0 END) AS BIGINT) AS up_to_4k,
         CAST(SUM(CASE WHEN is_data AND bytes <= 16384 THEN 1 ELSE 0 END) AS BIGINT) AS up_to_16k,
         CAST(SUM(CASE WHEN is_data AND bytes <= 65536 THEN 1 ELSE 0 END) AS BIGINT) AS up_to_64k,
         CAST(SUM(CASE WHEN is_data AND bytes <= 262144 THEN 1 ELSE 0 END) AS BIGINT) AS up_to_256k,
         CAST(SUM(CASE WHEN is_data THEN bytes ELSE 0 END) AS BIGINT) AS bytes,
         AVG(CASE WHEN is_data AND complete_ns > issue_ns THEN LN(complete_ns - issue_ns) END) AS mean_ln_d2c
  FROM ios
  GROUP BY machine, trace
) AS f ON f.machine = t.machine AND f.trace = t.trace
LEFT JOIN waits AS w ON w.machine = t.machine AND w.trace = t.trace
LEFT JOIN sequences AS s ON s.machine = t.machine AND s.trace = t.trace
ORDER BY t.machine, t.trace
