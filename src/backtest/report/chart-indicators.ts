import type { ChartIndicator, ChartLine } from '../../base/charts/level.ts';
import type { ReturnedIndicator } from '../../engine/series/returned-indicators.ts';

const MAX_LINES = 24;

/** Names of two lines of an indicator between which the area is filled. */
const EDGES: readonly (readonly [string, string])[] = [
  ['spanA', 'spanB'],
  ['upper', 'lower'],
];

/** The indicators of an instrument, with at most `most` lines. */
export function indicatorsOf(
  instrument: number,
  indicators: readonly ReturnedIndicator[],
  most = MAX_LINES,
): readonly ReturnedIndicator[] {
  let lines = 0;
  return indicators.filter((indicator) => {
    if (!indicator.bars.has(instrument)) return false;
    lines += indicator.lines.length;
    return lines <= most;
  });
}

export function linesOf(indicators: readonly ReturnedIndicator[]): readonly unknown[] {
  return indicators.flatMap(({ lines }) => lines);
}

export function labelOf({ label }: ReturnedIndicator): string {
  return label.replaceAll(',', ', ');
}

function edgesOf({ lines }: ReturnedIndicator): readonly [string, string] | undefined {
  return EDGES.find((pair) => pair.every((edge) => lines.some(({ line }) => line === edge)));
}

/** The lines of an indicator; the two edges of a filled area are adjacent. */
export function sortedLines(indicator: ReturnedIndicator): ReturnedIndicator['lines'] {
  const edges = edgesOf(indicator);
  return edges === undefined
    ? indicator.lines
    : indicator.lines.toSorted((a, b) => edges.indexOf(a.line) - edges.indexOf(b.line));
}

export function chartIndicator(indicator: ReturnedIndicator): ChartIndicator {
  const { kind, lines } = indicator;
  const isSingle = lines.length === 1;
  const [first] = lines;
  const suffix = `.${first!.line}`;
  return {
    name:
      !isSingle && first!.name.endsWith(suffix)
        ? first!.name.slice(0, -suffix.length)
        : isSingle
          ? first!.name
          : '',
    label: labelOf(indicator),
    lines: sortedLines(indicator).map(({ line, scale }): ChartLine => ({
      name: line === 'value' ? '' : line,
      pane: scale,
      style: styleOf(kind, line),
      isFilled: line === edgesOf(indicator)?.[0],
    })),
  };
}

function styleOf(kind: string, line: string): ChartLine['style'] {
  if (line === 'histogram') return 'histogram';
  return kind === 'parabolicSar' ? 'dots' : 'line';
}
