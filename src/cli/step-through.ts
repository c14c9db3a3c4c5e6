import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Outcome } from '../backtest/backtest.ts';
import type { FailedRun } from '../backtest/execute.ts';
import type { BacktestJob } from '../backtest/job.ts';
import { removeOldResult, writeRun } from '../backtest/run-files.ts';
import { type Command, parseCommand } from '../backtest/step/commands.ts';
import { SteppedRun, type Walked } from '../backtest/step/stepped-run.ts';
import { Stepper, type Reply } from '../backtest/step/stepper.ts';
import type { Summary } from '../backtest/summary.ts';
import { ServiceError } from '../base/errors.ts';
import { gateFailure } from './gate-failure.ts';
import type { Output } from './output.ts';
import { showSummary } from './show-backtest.ts';
import { showHelp, showReply } from './show-step.ts';
import type { Answer, Context } from './verb.ts';

/** Reply to a command of `backtest --step --json`. */
export type StepDocument =
  | Reply
  | { readonly error: { readonly message: string; readonly remedy: string | null } };

/**
 * Walks through a run by commands on standard input, one per line. An empty line on a terminal repeats the
 * command before it. A step forward from the last one ends the walk, as `quit` does.
 *
 * @param end shown at the last step
 * @param out prints the replies
 * @returns whether the last step was reached
 * @throws the reason of `context.signal`
 */
async function* stepThrough(
  context: Context,
  { job, run, end }: { readonly job: BacktestJob; readonly run: Walked; readonly end: string },
  out?: Output,
): AsyncGenerator<StepDocument, boolean> {
  const stepper = new Stepper(new SteppedRun(job, run));
  const { lines, prompt } = openLines(context);
  const show = (reply: Reply): Reply => {
    if (out !== undefined) showReply(out, reply, end);
    return reply;
  };
  yield show(stepper.take({ kind: 'show' }));
  prompt();
  let last = '';
  for await (const line of lines) {
    if (line.trim() !== '') last = line;
    else if (!context.interactive) continue;
    try {
      const command = parseCommand(last);
      if (command.kind === 'quit' || (stepper.isFinished && goesForward(command))) break;
      if (command.kind !== 'help') yield show(stepper.take(command));
      else if (out !== undefined) showHelp(out);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const { message, remedy = null } = error;
      out?.line(`error: ${message}`);
      if (remedy !== null) out?.line(`→ ${remedy}`);
      yield { error: { message, remedy } };
    }
    prompt();
  }
  context.signal.throwIfAborted();
  return stepper.isFinished;
}

function goesForward({ kind }: Command): boolean {
  return kind === 'next' || kind === 'until' || kind === 'continue';
}

/**
 * Answer of `backtest --step`: replies to commands and, if the end of the run was reached, the summary
 * after its files are written. Otherwise nothing is written, and no gate is evaluated.
 */
export function stepAnswer(
  context: Context,
  job: BacktestJob,
  outcome: Outcome,
  { directory, hasEquityCsv }: { readonly directory: string; readonly hasEquityCsv: boolean },
): Answer {
  let isFinished = false;
  const walk = { job, run: outcome, end: 'end of the run: next or quit writes the results' };
  const step = async function* (out?: Output): AsyncGenerator<StepDocument | Summary> {
    try {
      isFinished = yield* stepThrough(context, walk, out);
    } finally {
      if (!isFinished) await rmdir(directory).catch(() => {});
    }
    if (!isFinished) return;
    await removeOldResult(join(directory, 'summary.json'));
    const { summary, report } = await writeRun(directory, job, outcome, { hasEquityCsv });
    if (out !== undefined) {
      out.line();
      showSummary(out, summary);
      out.line();
      out.line(`files: ${directory}`);
      out.line(`report: ${report}`);
    }
    yield summary;
  };
  return {
    data: null,
    stream: step(),
    async show(out) {
      for await (const _document of step(out));
    },
    get failure() {
      return isFinished ? gateFailure(outcome.summary) : undefined;
    },
  };
}

/** Answer of `backtest --step` for a run that failed: replies to commands, and the failure at the end. */
export function stepFailureAnswer(
  context: Context,
  job: BacktestJob,
  run: FailedRun,
  failure: ServiceError,
): Answer {
  const [what] = failure.message.split('\n');
  const step = async function* (out?: Output): AsyncGenerator<StepDocument> {
    context.message(`note: bar ${run.result.steps} is the last one: ${what}`);
    const end = 'the strategy failed at this bar: next or quit ends';
    yield* stepThrough(context, { job, run, end }, out);
  };
  return {
    data: null,
    stream: step(),
    async show(out) {
      for await (const _document of step(out));
    },
    failure,
  };
}

/** Begins to read lines. Iterating over them to the end, or leaving the loop, closes the input. */
function openLines({ io, interactive, signal }: Context) {
  const output = interactive ? io.stdout : undefined;
  const input = createInterface({ input: io.stdin, output, crlfDelay: Infinity, signal });
  input.setPrompt('(step) ');
  // On a terminal, readline receives Ctrl-C instead of the process.
  input.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  let isOpen = true;
  input.on('close', () => {
    isOpen = false;
  });
  return {
    // Created here, because lines that arrive before it are lost.
    lines: input[Symbol.asyncIterator](),
    prompt: (): void => {
      if (interactive && isOpen) input.prompt();
    },
  };
}
