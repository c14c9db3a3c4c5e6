import { resolve } from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import type { RunResult } from '../../trading/host/pod/run-deployment.ts';
import type { RunnerView } from '../../trading/host/pod/trade-options.ts';
import { abortOnInterrupt } from '../interrupt.ts';
import type { Output } from '../output.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  summary: 'run a deployment of a bot, as a pod in a cluster does',
  description:
    'Pods of production deployments run this command; run it yourself to try a deployment. The file specifies the bot, the source of bars, the venue for orders, the supervising server, and the directory of the log from which the command resumes after a crash. Without an exchange, the bot trades on its own data, at the pace of the market unless the file says `speed: max`. SIGTERM or Ctrl-C cancels all open orders, confirms this with the venue and exits; a second signal exits at once. Exit code 6: another process trades for the deployment. Exit code 7: not all orders are confirmed as ended.',
  arguments: {
    config: { description: 'file with `kind: Run`', complete: 'file' },
  },
  options: {
    logJson: { description: 'log in JSON, one object per line' },
  },
  settings: [
    'catalogue_dir',
    'strategy_timeout_seconds',
    'custom_code_memory_mb',
    'license_enforcement_enabled',
    'license_product',
  ],
  examples: ['run examples/run.yaml', 'run /etc/service-local/run/run.json --log-json'],
  async run({ settings, io, cwd }, { config: file }, { logJson }) {
    const { readRunConfig } = await import('../../trading/host/pod/run-config.ts');
    const { runDeployment } = await import('../../trading/host/pod/run-deployment.ts');
    const { createLog } = await import('../../base/log.ts');
    const { printable } = await import('../../base/printable.ts');
    const config = readRunConfig(resolve(cwd, file));
    const log = createLog((line) => io.stderr.write(`${printable(line)}\n`), logJson);
    let view: RunnerView | undefined;
    const stop = abortOnInterrupt(
      (text) => log.info(text),
      () => {
        const open = (view?.working() ?? []).map(({ order, symbol }) => `${order} (${symbol})`);
        log.error(`stopped at once; orders that may be open: ${open.join(', ') || 'none'}`);
        io.exit(130);
      },
    );
    const result = await runDeployment(config, {
      settings,
      env: io.env,
      log,
      stop,
      onView: (its) => (view = its),
    });
    return {
      data: dataOf(config.deployment_id, result),
      show: (out) => show(out, result),
      failure: failureOf(result),
    };
  },
});

function dataOf(deployment_id: string, result: RunResult): object {
  if (result.outcome === 'ended') return { deployment_id, outcome: result.outcome };
  const { outcome, verified, orders, steps, state } = result;
  return { deployment_id, outcome, verified, orders, steps, state: state ?? null };
}

function show(out: Output, result: RunResult): void {
  const rows: [string, string][] = [['outcome', result.outcome]];
  if (result.outcome !== 'ended') {
    const { steps, state, verified } = result;
    rows.push(['orders verified', verified ? 'yes' : 'no'], ['bars', String(steps)]);
    if (state !== undefined) {
      const { equity, cash, positions, working } = state;
      rows.push(['equity', equity.toFixed(2)], ['cash', cash.toFixed(2)]);
      for (const [symbol, units] of Object.entries(positions)) rows.push([symbol, String(units)]);
      if (working.length > 0) rows.push(['working orders', String(working.length)]);
    }
  }
  out.table([{ title: '' }, { title: '', align: 'right' }], rows);
}

function failureOf(result: RunResult): ServiceError | undefined {
  if (result.outcome === 'ended') return undefined;
  const { outcome, verified, error } = result;
  if (outcome === 'fenced') {
    return new ServiceError('conflict', 'another process is trading for this deployment', {
      reason: 'fenced',
      remedy: 'Let that process trade, or stop it and wait until its claim expires.',
    });
  }
  if (verified) return error;
  // Open orders at the venue matter more than the error that ended the process.
  const why =
    error === undefined ? '' : `; the process ended because of an error: ${error.message}`;
  return new ServiceError('halt_not_verified', `not all orders are confirmed as ended${why}`, {
    remedy: 'Check for open orders at the venue, and cancel them there.',
    cause: error,
  });
}
