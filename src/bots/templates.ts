import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';
import type { Bundle } from './bundle.ts';
import { exampleStrategy, startingParams } from './init.ts';

/** A spec to start a new bot from. */
export interface Template {
  /** Name of a built-in strategy, or `module` for custom code. */
  readonly name: string;
  readonly description: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly files: Bundle;
}

/** A dataset of the catalogue. */
export interface TemplateData {
  readonly symbol: string;
  readonly timeframe: string;
}

/** Account that may sell short. */
const MARGIN = { model: 'margin', initial: 0.5, maintenance: 0.25 };

const MODULE = 'strategy.ts';

/**
 * Templates for the built-in strategies that need no model, and for custom code.
 * @param datasets available data; without enough of them, a template names data to import.
 */
export function specTemplates(
  datasets: readonly TemplateData[],
  { allowsCode }: { readonly allowsCode: boolean },
): Template[] {
  const builtIn = [...BUILT_IN_STRATEGIES.values()]
    .filter(({ signals = [] }) => signals.length === 0)
    .map((strategy) => builtInTemplate(strategy, datasets));
  return allowsCode ? [...builtIn, codeTemplate(datasets)] : builtIn;
}

function builtInTemplate(strategy: Strategy, datasets: readonly TemplateData[]): Template {
  const { name, description, instruments, shorts = false } = strategy;
  const params = startingParams(name);
  const choice = Object.keys(params).length === 0 ? { name } : { name, params };
  const data = dataFor(instruments?.min ?? 1, datasets);
  const document = documentOf(titleOf(name), choice, data, shorts ? { account: MARGIN } : {});
  return { name, description, document, files: {} };
}

function codeTemplate(datasets: readonly TemplateData[]): Template {
  const choice = { module: `./${MODULE}`, params: startingParams('module') };
  return {
    name: 'module',
    description: 'A strategy of your own, in TypeScript.',
    document: documentOf('My strategy', choice, dataFor(1, datasets)),
    files: { [MODULE]: exampleStrategy() },
  };
}

/** `Sma crossover` for `sma_crossover`. */
function titleOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** As many datasets as needed, all with the timeframe of the first. */
function dataFor(count: number, datasets: readonly TemplateData[]): readonly TemplateData[] {
  const timeframe = datasets[0]?.timeframe ?? '1d';
  const found = datasets.filter((one) => one.timeframe === timeframe).slice(0, count);
  const missing = Array.from({ length: count - found.length }, (_, i) => ({
    symbol: `SYMBOL${i + 1}`,
    timeframe,
  }));
  return [...found, ...missing];
}

function documentOf(
  name: string,
  strategy: Readonly<Record<string, unknown>>,
  data: readonly TemplateData[],
  engine: Readonly<Record<string, unknown>> = {},
): Template['document'] {
  const symbols = data.map(({ symbol }) => symbol);
  const sources = symbols.map((symbol) => [symbol, `catalog://${symbol}`] as const);
  return {
    apiVersion: 'bots/v1',
    kind: 'Bot',
    metadata: { name, slug: name.toLowerCase().replaceAll(' ', '-') },
    spec: {
      kind: 'trading',
      universe: { symbols, currency: 'USD' },
      data: {
        ...(sources.length === 1
          ? { source: sources[0]![1] }
          : { sources: Object.fromEntries(sources) }),
        timeframe: data[0]!.timeframe,
      },
      strategy,
      engine: {
        cash: '100000',
        ...engine,
        fill: 'next_open',
        units: 'fractional',
        fees: { model: 'percent', rate: '0.001' },
        slippage: { model: 'basis_points', bps: 2 },
        seed: 1,
      },
    },
  };
}
