import { printable, printableLine } from '../base/printable.ts';

type Paint = (text: string) => string;

/** Without color, every function returns its text unchanged. */
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

/** Loads chalk only if `color` is true. */
export async function makeStyle(color: boolean): Promise<Style> {
  if (!color) return PLAIN;
  const { Chalk } = await import('chalk');
  return new Chalk({ level: 1 });
}

/**
 * Returns whether to color what goes to `stream`. The setting overrides the environment, as
 * https://no-color.org asks; FORCE_COLOR overrides NO_COLOR, as in Node.
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

export interface Stream {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean;
  /** Width of a terminal in characters; 0 if unknown. */
  readonly columns?: number;
}

export const DEFAULT_WIDTH = 80;

export type Cell = string | { readonly text: string; readonly paint: Paint };

export interface Column {
  readonly title: string;
  /** Default left. */
  readonly align?: 'left' | 'right';
}

export interface Output {
  readonly style: Style;
  /** Writes the text and a line feed. Removes control characters except the colors of `style`. */
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

// oxlint-disable-next-line no-control-regex -- Chalk's codes begin with ESC.
const COLOR_CODE = /(\u001B\[\d{1,2}m)/;

/** Like `printable`, but keeps color codes. */
function sanitizeColored(text: string): string {
  const parts = text.split(COLOR_CODE); // Every second part is a color code.
  return parts.map((part, i) => (i % 2 === 1 ? part : printable(part))).join('');
}

const GAP = '  ';

/**
 * Formats aligned columns below their titles, if there are any. Nothing is truncated, since a
 * shortened id is useless and a shortened figure is wrong. Rows that are wider than `width` are
 * printed one below the other, with one line per title and value.
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

export interface Progress {
  /** Reports the amount done, in the unit of the total. Redraws at most ten times per second. */
  readonly update: (done: number) => void;
  /** Clears the line. Call it in `finally`. */
  readonly stop: () => void;
}

const SILENT: Progress = { update: () => {}, stop: () => {} };
const WIPE = '\r\u001B[K';
const REDRAW_MS = 100;
const BAR_WIDTH = 24;

/**
 * Draws a progress bar at once and on each update, or nothing if the stream is not a terminal.
 * @param before amount that an earlier run has done; it does not count toward the speed.
 * @param now clock in milliseconds.
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

/** Writes lines. On a terminal, they replace the progress bar. */
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
