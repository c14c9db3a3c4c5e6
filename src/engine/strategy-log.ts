/** A line that a strategy has logged. */
export interface LogLine {
  /** Index of the step. */
  readonly step: number;
  /** Opening time of the bar, ms since the Unix epoch. */
  readonly time: number;
  readonly text: string;
}

/** UTF-16 code units per line, without the ellipsis of a line that was cut. */
export const LONGEST_LINE = 400;
const MOST_PER_STEP = 20;
/** Lines in memory at the same time. */
export const MOST_LINES = 20_000;

/** Characters that could break a line or control a terminal, except tabs. */
// oxlint-disable-next-line no-control-regex -- The pattern must match control characters.
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]+/g;

/**
 * The lines that a strategy logs, within limits. Cuts long lines, and replaces all lines beyond a limit
 * with one line that states the limit.
 */
export class StrategyLog {
  #lines: LogLine[] = [];
  #step = -1;
  #inStep = 0;

  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  write(step: number, time: number, message: string): void {
    if (step !== this.#step) {
      this.#step = step;
      this.#inStep = 0;
    }
    this.#inStep += 1;
    const text = this.#textOf(message);
    if (text !== undefined) this.#lines.push({ step, time, text });
  }

  /** Returns the lines, and removes them. */
  take(): readonly LogLine[] {
    const lines = this.#lines;
    this.#lines = [];
    return lines;
  }

  #textOf(message: string): string | undefined {
    if (this.#lines.length >= MOST_LINES) {
      const isFirst = this.#lines.length === MOST_LINES;
      return isFirst ? `[only ${MOST_LINES} lines of a run are kept]` : undefined;
    }
    if (this.#inStep > MOST_PER_STEP) {
      const isFirst = this.#inStep === MOST_PER_STEP + 1;
      return isFirst ? `[only ${MOST_PER_STEP} lines of a bar are kept]` : undefined;
    }
    return lineOf(message);
  }
}

function lineOf(message: string): string {
  const line = message.slice(0, LONGEST_LINE).replaceAll(CONTROL, ' ');
  return (message.length > LONGEST_LINE ? `${line}…` : line).toWellFormed();
}
