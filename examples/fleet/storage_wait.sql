-- storage_wait: by machine, over all its traces: how long somebody waited for the disk, in all and in a workday of eight
-- hours of such work (null where nothing was recorded). Traces of one machine are taken for different times.
SELECT machine, COUNT(*) AS traces, CAST(SUM(ios) AS BIGINT) AS ios, CAST(SUM(recorded_ns) AS BIGINT) AS recorded_ns,
       CAST(SUM(storage_wait_ns) AS BIGINT) AS storage_wait_ns,
       CASE WHEN SUM(recorded_ns) > 0
            THEN CAST(SUM(storage_wait_ns) AS DOUBLE) / CAST(SUM(recorded_ns) AS DOUBLE) * 28800 END
         AS storage_wait_s_per_workday,
       CAST(SUM(lost_events) AS BIGINT) AS lost_events
FROM figures
GROUP BY machine
ORDER BY machine
