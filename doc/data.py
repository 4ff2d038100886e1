#!/usr/bin/env python3
"""Questions to the data of a report in SQL: doc/data.py data.parquet ['select ... from reported'].

Needs DuckDB (pip install duckdb). `data` has all rows, `reported` those of finished cells, of a workload with fresh seeds only
theirs: its other cells have every rate and only chose one. Without a query, prints four tables: accuracy and perplexity beyond
training, costs, step time relative to RoPE where nothing else ran on the machine, and accuracy by length for each encoding.
"""

import sys

import duckdb

REPORTED = """
    select * from data where status = 'done'
    qualify grid_fresh or not bool_or(grid_fresh) over (partition by suite, workload)
"""

RESULTS = """
    select suite, workload, split, len, encoding, count(*) as seeds,
        round(avg(coalesce(unseen_exact_match, exact_match)), 4) as exact_match,
        round(avg(coalesce(unseen_token_accuracy, token_accuracy)), 4) as token_accuracy,
        round(exp(avg(coalesce(unseen_nll, nll))), 3) as perplexity
    from reported where not in_distribution and coalesce(unseen_samples, 1) > 0
    group by all order by suite, workload, split, len, exact_match desc
"""

# A cell has a row for each evaluation: its costs are counted once.
COSTS = """
    select suite, workload, encoding, any_value(flops_train_step) as flops_train_step,
        avg(tokens_per_second) as tokens_per_second, max(peak_bytes) as peak_bytes
    from (select distinct on (suite, key) * from reported)
    group by suite, workload, encoding order by suite, workload, tokens_per_second desc
"""

RATIO = """
    select encoding, avg(step_seconds_median / rope) as seconds_to_rope
    from (select distinct on (suite, key) * from reported where not disturbed)
    join (select suite, workload, avg(step_seconds_median) as rope from reported where encoding = 'rope' and not disturbed
        group by suite, workload)
    using (suite, workload) group by encoding order by 2
"""

PIVOT = """
    pivot (select suite, workload || ' x' || round(len / train_len, 2) as length, encoding,
        coalesce(unseen_exact_match, exact_match) as exact_match
        from reported where not in_distribution and coalesce(unseen_samples, 1) > 0)
    on encoding using round(avg(exact_match), 3) group by suite, length order by suite, length
"""

if len(sys.argv) < 2:
    sys.exit(__doc__)
data = duckdb.read_parquet(sys.argv[1])
reported = duckdb.sql(REPORTED)
for query in sys.argv[2:] or [RESULTS, COSTS, RATIO, PIVOT]:
    print(duckdb.sql(query))
