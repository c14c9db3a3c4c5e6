# %% [markdown]
# # Read a run with pandas
#
# Each `# %%` is a cell in Jupyter (jupytext), VS Code and Spyder. As a script:
# `python3 examples/notebook/read_run.py DIRECTORY`, where the directory is that of
# `service-local backtest bot.yaml --out DIRECTORY`. Needs pandas and pyarrow.

# %%
import json
import sys
from pathlib import Path

import pandas

run = Path(sys.argv[1] if len(sys.argv) > 1 else "result")
summary = json.loads((run / "summary.json").read_text())
equity = pandas.read_parquet(run / "equity.parquet").set_index("time")
trades = pandas.read_parquet(run / "trades.parquet")

# %% Daily returns, and the Sharpe ratio by the conventions of the summary
conventions = summary["conventions"]
samples = equity["equity"].resample("1D").last().dropna()
returns = samples.pct_change().dropna()
sharpe = returns.mean() / returns.std(ddof=conventions["ddof"])
sharpe *= conventions["periods_per_year"] ** 0.5

# %% Profit by year of exit
closed = trades[trades["status"] == "closed"]
by_year = closed.groupby(closed["exit_time"].dt.year)["pnl"].agg(["count", "sum"])
print(by_year)

# %%
result = {
    "bars": len(equity),
    "end_equity": float(equity["equity"].iloc[-1]),
    "max_drawdown": float(equity["drawdown"].min()),
    "trades": len(closed),
    "sharpe": float(sharpe),
}
print(json.dumps(result))
