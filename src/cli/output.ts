import { printable, printableLine } from '../base/printable.ts';

/** Puts terminal color around a text, or leaves it as it is. */
type Paint = (text: string) => string;

/** The few colours in use; all of them are plain when color is off. */
export interface Style {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly cyan: Paint;
}

const leaveUnpainted: Paint = (text) => text;
const PLAIN: Style = {
  bold: leaveUnpainted,
  dim: leaveUnpainted,
  red: leaveUnpainted,
  green: leaveUnpainted,
  yellow: leaveUnpainted,
  cyan: leaveUnpainted,
};

/** Loads chalk only when there is something to color. */
export async function makeStyle(color: boolean): Promise<Style> {
  if (!color) return PLAIN;
  const { Chalk } = await import('chalk');
  return new Chalk({ level: 1 });
}

/**
 * Whether to color what goes to `stream`. A setting of the user's is stronger than the environment,
 * as https://no-color.org asks; FORCE_COLOR is stronger than NO_COLOR, as in Node.
 */
export function wantsColor(
  setting: 'auto' | 'always' | 'never',
  env: NodeJS.ProcessEnv,
  stream: { readonly isTTY?: boolean },
): boolean {
  if (setting !== 'auto') return setting === 'always';
  const { FORCE_COLOR, NO_COLOR, TERM } = env;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  if (NO_COLOR) return false;
  return stream.isTTY === true && TERM !== 'dumb';
}

/** What is needed of standard output and standard error. */
export interface Stream {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean;
  /** Width of a terminal in characters; 0 where it does not tell. */
  readonly columns?: number;
}

/** The usual width, for a terminal that does not tell its own. */
export const DEFAULT_WIDTH = 80;

/** A table cell: text, or text with a color. */
export type Cell = string | { readonly text: string; readonly paint: Paint };

export interface Column {
  readonly title: string;
  /** Numbers read best on the right; default left. */
  readonly align?: 'left' | 'right';
}

/** Where a verb shows its answer. */
export interface Output {
  readonly style: Style;
  /** Writes the text and a line feed. Of what the text may hold only the colours of `style` act. */
  readonly line: (text?: string) => void;
  readonly table: (columns: readonly Column[], rows: readonly (readonly Cell[])[]) => void;
}

export function makeOutput(stream: Stream, style: Style): Output {
  const columns = stream.isTTY ? stream.columns || DEFAULT_WIDTH : undefined;
  return {
    style,
    line: (text = '') =>
      void stream.write(`${style === PLAIN ? printable(text) : sanitizeColored(text)}\n`),
    table: (head, rows) => void stream.write(formatTable(head, rows, style, columns)),
  };
}

// oxlint-disable-next-line no-control-regex -- Chalk's own codes begin with one.
const COLOR_CODE = /(\u001B\[\d{1,2}m)/;

/** The same as `printable`, but for colours. */
function sanitizeColored(text: string): string {
  const parts = text.split(COLOR_CODE); // Colours and what is between them take turns.
  return parts.map((part, i) => (i % 2 === 1 ? part : printable(part))).join('');
}

const GAP = '  ';

/**
 * Lines of aligned columns below their titles, if there are any. Nothing is ever cut: an id without
 * its last letters is of no use, and a figure without its last digits is a wrong one. Rows that do
 * not fit into the width are shown one after the other instead, each value in a line after its
 * title; pairs of name and value are in that form already.
 */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  style: Style,
  width = Infinity,
): string {
  const titles = columns.map(({ title }) => ({ text: title, paint: style.dim }));
  const cells = rows.map((row) => columns.map((_, i) => cleanCell(row[i] ?? '')));
  const widths = widthsOf([titles, ...cells]);
  const total = widths.reduce((sum, each) => sum + each + GAP.length, -GAP.length);
  if (total > width && columns.length > 2 && columns.every(({ title }) => title !== '')) {
    const pairs = [{ title: '' }, { title: '' }];
    return cells
      .map((row) =>
        formatRows(
          pairs,
          row.map((cell, i) => [titles[i]!, cell]),
        ),
      )
      .join('\n');
  }
  const hasTitles = columns.some(({ title }) => title !== '');
  return formatRows(columns, hasTitles ? [titles, ...cells] : cells);
}

interface CleanCell {
  readonly text: string;
  readonly paint: Paint;
}

function formatRows(columns: readonly Column[], rows: readonly (readonly CleanCell[])[]): string {
  const widths = widthsOf(rows);
  const lines = rows.map((row) =>
    row
      .map(({ text, paint }, i) => {
        const space = ' '.repeat(widths[i]! - text.length);
        if (columns[i]!.align === 'right') return space + paint(text);
        return paint(text) + (i === columns.length - 1 ? '' : space);
      })
      .join(GAP),
  );
  return lines.map((text) => `${text}\n`).join('');
}

function widthsOf(rows: readonly (readonly CleanCell[])[]): number[] {
  return (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]!.text.length)));
}

function cleanCell(cell: Cell): CleanCell {
  const { text, paint } = typeof cell === 'string' ? { text: cell, paint: leaveUnpainted } : cell;
  return { text: printableLine(text), paint };
}

/** A bar for one piece of work of known size. */
export interface Progress {
  /** Says how much is done so far, in the unit of the total. Cheap: draws at most ten times a second. */
  readonly update: (done: number) => void;
  /** Clears the line; call it in `finally`. */
  readonly stop: () => void;
}

const SILENT: Progress = { update: () => {}, stop: () => {} };
const WIPE = '\r\u001B[K';
const REDRAW_MS = 100;
const BAR_WIDTH = 24;

/**
 * Draws on a terminal, at once and then as it is updated, and is silent elsewhere.
 * @param before how much of the total was done in an earlier run; it does not count for the speed.
 * @param now a clock in milliseconds.
 */
export function makeProgress(
  stream: Stream,
  label: string,
  total: number,
  before = 0,
  now: () => number = () => performance.now(),
): Progress {
  if (!stream.isTTY) return SILENT;
  const start = now();
  let drawn = -Infinity;
  const update = (done: number): void => {
    const time = now();
    if (time - drawn < REDRAW_MS) return;
    drawn = time;
    const text = formatProgress(label, { before, done, total }, time - start);
    stream.write(`${WIPE}${text.slice(0, (stream.columns || DEFAULT_WIDTH) - 1)}`);
  };
  update(before);
  return { update, stop: () => void stream.write(WIPE) };
}

/** Writes lines; on a terminal they take the place of a bar that is being drawn there. */
export function writeLines(stream: Stream, text: string): void {
  stream.write(`${stream.isTTY ? WIPE : ''}${text}\n`);
}

/** `sweep ███████░░░ 70 % 122/174 9 s left`. */
export function formatProgress(
  label: string,
  { before, done, total }: { before: number; done: number; total: number },
  elapsedMs: number,
): string {
  const share = total > 0 ? Math.min(1, done / total) : 1;
  const filled = Math.round(share * BAR_WIDTH);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
  const leftMs = (elapsedMs / (done - before)) * (total - done);
  const left = done > before ? `${formatDuration(leftMs)} left` : '';
  return `${label} ${bar} ${Math.floor(share * 100)} % ${done}/${total} ${left}`.trimEnd();
}

/** Milliseconds as `340 ms`, `9 s`, `2 min 05 s`, `1 h 12 min`. */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (n: number): string => String(n).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}
