import { rmdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { FailedRun } from '../../backtest/execute.ts';
import { PROFILES } from '../../backtest/profiles.ts';
import { parseAssertion } from '../../backtest/gates.ts';
import { ServiceError } from '../../base/errors.ts';
import { gateFailure } from '../gate-failure.ts';
import { DATA_OPTIONS, HOLDOUT_OPTION } from '../data-options.ts';
import type { Lock } from '../../backtest/summary.ts';
import { defineVerb, type Answer } from '../verb.ts';

export const verb = defineVerb({
  summary: 'run a bot over its history and report the results',
  description:
    'Runs the bot over its history on this machine: no server, no login, no network. Writes ' +
    'summary.json, events.ndjson, trades.csv, trades.parquet, equity.parquet, report.html, ' +
    'equity.csv unless the run has more than 200,000 bars, and log.txt if the strategy calls log().',
  arguments: {
    file: { description: 'bot file, YAML or JSON', complete: 'file' },
  },
  options: {
    param: {
      short: 'p',
      value: 'name=value',
      description: 'parameter of the strategy, which overrides the spec',
      repeat: true,
    },
    from: { value: 'date', description: 'first day, which overrides the spec' },
    to: { value: 'date', description: 'last day, which overrides the spec' },
    ...DATA_OPTIONS,
    ...HOLDOUT_OPTION,
    openHoldout: { description: 'also run over the holdout, and record this in the trial ledger' },
    out: { value: 'dir', description: 'directory for the result files', complete: 'directory' },
    equity: {
      value: 'format',
      description: 'also write equity.csv for a run of more than 200,000 bars',
      choices: ['csv'],
    },
    profile: {
      value: 'library',
      description: 'also report figures by the conventions of another library',
      choices: PROFILES,
    },
    benchmark: {
      value: 'series',
      description: 'symbol, file or catalog://NAME to compare with, which overrides the spec',
      complete: 'file',
    },
    assert: {
      value: 'gate',
      description:
        "additional gate, such as 'sharpe>=0.5' or 'refused_orders<=0'; exit code 5 if a gate is not met",
      repeat: true,
      parse: parseAssertion,
    },
    junit: { value: 'file', description: 'write the gates as JUnit XML', complete: 'file' },
    sealed: {
      description: 'run your own strategy in the sandbox that a server uses: no files, no network',
    },
    step: {
      description:
        'step through the run with commands from standard input; help lists them. Results are written only if you reach the last bar',
      streams: true,
    },
    checkDeterminism: { description: 'run again in another process and compare the events' },
    writeLock: {
      description: 'write a lock file that lists everything that decides the result',
    },
    verifyLock: { description: 'fail if anything differs from the lock file' },
  },
  settings: ['runs_dir', 'catalogue_dir', 'strategy_timeout_seconds', 'strategy_memory_mb'],
  examples: [
    'backtest bot.yaml',
    'backtest bot.yaml --json | jq .risk.sharpe',
    "backtest bot.yaml --assert 'sharpe>=0.5' --junit gates.xml",
    'backtest bot.yaml -p fast=20 --from 2010-01-01 --out ./result',
  ],
  async run(context, args, options) {
    const { loadBot } = await import('../../bots/load-bot.ts');
    const { FileThread } = await import('../../backtest/file-thread.ts');
    const { overridesOf } = await import('../runs.ts');
    const { loaderOf } = await import('../own-strategies.ts');

    const file = resolve(context.cwd, args.file);
    const bot = loadBot(file, overridesOf(options), await loaderOf(context, file, options));
    const { param, from, to, columns, repair, holdout } = options;
    const isOverridden = [...param, from, to, columns, repair, holdout].some(Boolean);
    if (options.openHoldout && bot.spec.spec.data.holdout === undefined) {
      throw new ServiceError('usage', '--open-holdout needs a holdout, but the bot declares none', {
        remedy: 'Set data.holdout in the bot file, or use --holdout, for example --holdout 1y.',
      });
    }
    if (options.writeLock && isOverridden) {
      throw new ServiceError(
        'usage',
        '--write-lock requires the bot exactly as its file defines it',
        {
          remedy: 'Put parameters, dates, columns and repair into the file, or omit --write-lock.',
        },
      );
    }
    const junitFile = options.junit === undefined ? undefined : resolve(context.cwd, options.junit);
    // If this run fails, the result of an earlier run must not pass for its result.
    if (junitFile !== undefined) {
      const { removeOldResult } = await import('../../backtest/run-files.ts');
      await removeOldResult(junitFile);
    }
    const thread = new FileThread();
    const catalogueDir = context.settings.catalogue_dir;
    await thread.prepareFor(Object.values(bot.data).map((source) => ({ source, catalogueDir })));
    const { prepare } = await import('../../bots/prepare.ts');
    const { PhaseProgress } = await import('../phase-progress.ts');
    const progress = new PhaseProgress(context);
    const preparing = prepare(bot, {
      catalogueDir,
      assertions: options.assert,
      opensHoldout: options.openHoldout,
      load: (load) =>
        thread.load({ ...load, onProgress: progress.of(`reading ${basename(load.source)}`) }),
      benchmark:
        options.benchmark === undefined
          ? undefined
          : { name: options.benchmark, directory: context.cwd },
    }).finally(() => progress.stop());
    // Loads the rest of the program while the thread reads the bars.
    const [
      { signalsOver },
      { backtest },
      { prepareDirectory, removeOldResult, writeRun },
      { writeText },
      { lockPath, writeLock },
      { withOutside },
      { compareRuns, newRunId },
      { countedRun },
      { countTrials },
      { showSummary },
      { LOG_FILE, logLine },
      { job: prepared, notes },
    ] = await Promise.all([
      import('../../bots/models/signals.ts'),
      import('../../backtest/backtest.ts'),
      import('../../backtest/run-files.ts'),
      import('../../backtest/write-text.ts'),
      import('../../bots/spec-lock.ts'),
      import('../../backtest/run-lock.ts'),
      import('../runs.ts'),
      import('../../backtest/ledger/counted-run.ts'),
      import('../count-trials.ts'),
      import('../show-backtest.ts'),
      import('../../backtest/log-lines.ts'),
      preparing,
    ]);
    for (const note of notes) context.message(`note: ${note}`);
    const counted = countTrials(context);
    const runId = newRunId();
    const directory = resolve(
      context.cwd,
      options.out ?? `${context.settings.runs_dir}/${bot.spec.metadata.slug}/${runId}`,
    );
    // From here on, Ctrl-C ends the run gracefully.
    const { signal } = context;
    const lock = counted.capture(prepared)([prepared]);
    const job = { ...prepared, lock };
    let outcome;
    const failed: { run?: FailedRun } = {};
    try {
      await prepareDirectory(directory);
      if (!options.step) await removeOldResult(join(directory, 'summary.json'));
      if (options.verifyLock) await verifyLock(file, job.lock, isOverridden);
      const held = { ...job, holdout: counted.useHoldout(job) };
      const run = async () =>
        backtest(
          { ...held, signals: await signalsOver(bot.models, job.instruments, signal) },
          {
            runId,
            profile: options.profile,
            timeoutMs: context.settings.strategy_timeout_seconds * 1000,
            signal,
            onProgress: progress.of('backtest'),
            onFailure: (found: FailedRun) => void (failed.run = found),
          },
        );
      outcome = await countedRun(job, counted, run, signal);
    } catch (error) {
      // A failed run leaves no empty directory behind.
      await rmdir(directory).catch(() => {});
      if (failed.run === undefined || !(error instanceof ServiceError) || signal.aborted)
        throw error;
      if (!options.step) {
        for (const line of failed.run.result.log?.slice(-LAST_LINES) ?? [])
          context.message(`log: ${logLine(line)}`);
        throw error;
      }
      if (failed.run.result.steps === 0) throw error;
      const { stepFailureAnswer } = await import('../step-through.ts');
      return stepFailureAnswer(context, job, failed.run, error);
    } finally {
      progress.stop();
    }
    const usedLock = withOutside(lock, outcome.traces?.outside);
    const marked = { ...outcome, summary: { ...outcome.summary, lock: usedLock } };
    const hasEquityCsv = options.equity === 'csv';
    if (options.step) {
      const { stepAnswer } = await import('../step-through.ts');
      return stepAnswer(context, job, marked, { directory, hasEquityCsv });
    }
    const { summary, report } = await writeRun(directory, job, marked, {
      hasEquityCsv,
      thread,
      onProgress: progress.of('writing'),
    }).finally(() => progress.stop());
    const answer: Answer = {
      data: summary,
      show(out) {
        showSummary(out, summary);
        out.line();
        out.line(`report: ${report}`);
        if (summary.files.includes(LOG_FILE)) out.line(`log: ${join(directory, LOG_FILE)}`);
      },
      failure: gateFailure(summary),
    };
    if (signal.aborted) return { ...answer, failure: lateInterrupt(directory, options) };
    if (junitFile !== undefined) {
      const { junit } = await import('../../backtest/junit.ts');
      await writeText(junitFile, [junit(summary.gates, job.bot.slug)]);
    }
    if (options.checkDeterminism) {
      const events = await compareRuns(context, args.file, options, directory);
      context.message(`deterministic: two processes produced the same ${events} events`);
    }
    if (options.verifyLock) context.message(`the run matches the lock: ${lockPath(file)}`);
    if (options.writeLock) context.message(`lock: ${await writeLock(file, usedLock)}`);

    return answer;
  },
});

/** Number of last lines of the log that are printed if the run fails. */
const LAST_LINES = 20;

/** @throws ServiceError `lock_drift` if the lock next to the file is missing or differs. */
async function verifyLock(file: string, own: Lock, isOverridden: boolean): Promise<void> {
  const { driftOf } = await import('../../backtest/lock-drift.ts');
  const { lockPath, readLock } = await import('../../bots/spec-lock.ts');
  const lock = readLock(file);
  if (lock === undefined) {
    throw new ServiceError('lock_drift', `the lock ${lockPath(file)} does not exist`, {
      remedy: 'Write one with --write-lock and keep it next to the bot.',
    });
  }
  const drift = driftOf(lock, own);
  if (drift.length === 0) return;
  const overrides = isOverridden ? ' (with the overrides of the command line)' : '';
  throw new ServiceError(
    'lock_drift',
    `the run differs from the lock${overrides}: ${drift.join('; ')}`,
    {
      remedy: isOverridden
        ? 'Omit --param, --from, --to, --columns, --repair and --holdout, or undo the other changes.'
        : 'Undo the change, or accept it with --write-lock.',
    },
  );
}

/** Remaining steps that were requested for a run whose results are complete. */
const FOLLOW_UPS = {
  junit: '--junit',
  checkDeterminism: '--check-determinism',
  writeLock: '--write-lock',
} as const;

/** Error for an interrupt after the results were complete. */
function lateInterrupt(
  directory: string,
  options: Readonly<Record<keyof typeof FOLLOW_UPS, unknown>>,
): ServiceError {
  const names = Object.keys(FOLLOW_UPS) as (keyof typeof FOLLOW_UPS)[];
  const undone = names.filter((name) => Boolean(options[name])).map((name) => FOLLOW_UPS[name]);
  const rest = undone.length === 0 ? '' : `; ${undone.join(', ')} did not run`;
  return new ServiceError(
    'interrupted',
    `interrupted after the run ended: the results in ${directory} are complete${rest}`,
    { reason: 'complete' },
  );
}
