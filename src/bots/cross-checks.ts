import { gatesOfSpec, impossibleToFail, impossibleToPass, isMetric } from '../backtest/gates.ts';
import { closest } from '../base/closest.ts';
import { resolveParams, type Params, type ParamValues } from '../engine/params.ts';
import { BUILT_IN_STRATEGIES } from '../engine/strategies/built-in.ts';
import type { Strategy } from '../engine/strategy.ts';
import { ServiceError, type Problem } from '../base/errors.ts';
import { parseWindow } from '../market/bar-time.ts';
import { optional, type Path, type SourceDocument } from './document.ts';
import { modelProblems } from './model-checks.ts';
import { fieldsOf, isFields, listOf, type Fields } from './fields.ts';

/**
 * Checks that involve several fields, or names defined elsewhere. The document may be invalid: parts
 * of the wrong type are skipped, since the schema reports them.
 */
export function crossChecks(document: SourceDocument): Problem[] {
  const { universe, data, strategy, engine, metrics, risk, ml_models } = fieldsOf(
    fieldsOf(document.value).spec,
  );
  const symbols = listOf(fieldsOf(universe).symbols);
  return [
    ...symbolProblems(symbols, document),
    ...sourceProblems(data, symbols, document),
    ...windowProblems(fieldsOf(data), document),
    ...marginProblems(fieldsOf(fieldsOf(engine).account), document),
    ...messageProblems(fieldsOf(risk), document),
    ...strategyChoiceProblems(strategy, document),
    ...gateProblems(metrics, document),
    ...modelProblems(listOf(ml_models), document),
  ];
}

/** Checks parameters, symbols, account and models against what the strategy requires. */
export function strategyProblems(strategy: Strategy, document: SourceDocument): Problem[] {
  const spec = fieldsOf(fieldsOf(document.value).spec);
  return [
    ...paramProblems(strategy, spec, document),
    ...symbolCountProblems(strategy, spec, document),
    ...accountProblems(strategy, spec, document),
    ...signalProblems(strategy, spec, document),
  ];
}

function paramProblems(strategy: Strategy, spec: Fields, document: SourceDocument): Problem[] {
  const given = fieldsOf(fieldsOf(spec.strategy).params);
  const at: Path = ['spec', 'strategy', 'params'];
  const { values, problems } = resolveParams(strategy.params, given);

  const found = problems.map(({ key, code, message }) => {
    if (code === 'invalid_param') return document.problem(pathTo(at, key), { code, message });
    const suggestion = closest(key ?? '', Object.keys(strategy.params));
    return document.problem(pathTo(at, key), { code, message, ...optional(suggestion) }, 'key');
  });
  const fault = problems.length === 0 ? combinationFault(strategy, values) : undefined;
  if (fault !== undefined) {
    found.push(document.problem(at, { code: 'invalid_param', message: fault }));
  }
  return found;
}

/** Result of the strategy's own check of parameters that are valid one by one. */
export function combinationFault(
  strategy: Strategy,
  values: ParamValues<Params>,
): string | undefined {
  try {
    return strategy.check?.(values);
  } catch (error) {
    return `the strategy's check() threw: ${String(error)}`;
  }
}

function symbolCountProblems(
  strategy: Strategy,
  spec: Fields,
  document: SourceDocument,
): Problem[] {
  const { length } = listOf(fieldsOf(spec.universe).symbols);
  const { min, max } = strategy.instruments ?? { min: 1, max: Infinity };
  if (length === 0 || (length >= min && length <= max)) return [];
  const needed = min === max ? `${min}` : max === Infinity ? `at least ${min}` : `${min} to ${max}`;
  const message = `${strategy.name} needs ${needed} ${max === 1 ? 'symbol' : 'symbols'}, not ${length}`;
  const at: Path = ['spec', 'universe', 'symbols'];
  return [document.problem(at, { code: 'wrong_symbol_count', message })];
}

function accountProblems(strategy: Strategy, spec: Fields, document: SourceDocument): Problem[] {
  const { account = 'cash' } = fieldsOf(spec.engine);
  const isCash = account === 'cash' || fieldsOf(account).model === 'cash';
  if (strategy.shorts !== true || !isCash) return [];
  const message = `${strategy.name} sells short, which needs a margin account`;
  const what = { code: 'margin_needed', message, suggestion: ACCOUNT_FOR_SHORTS };
  return [document.problem(['spec', 'engine', 'account'], what)];
}

function signalProblems(strategy: Strategy, spec: Fields, document: SourceDocument): Problem[] {
  const outputs = listOf(spec.ml_models).flatMap((model) => listOf(fieldsOf(model).outputs));
  const known = new Set(outputs.map((output) => fieldsOf(output).name));
  const missing = (strategy.signals ?? []).filter((name) => !known.has(name));
  if (missing.length === 0) return [];
  const message = `${strategy.name} reads ${missing.join(', ')}, but no model of the spec has such an output`;
  return [document.problem(['spec', 'ml_models'], { code: 'missing_signal', message })];
}

function symbolProblems(symbols: readonly unknown[], document: SourceDocument): Problem[] {
  const seen = new Set<unknown>();
  return symbols.flatMap((symbol, index) => {
    if (!seen.has(symbol)) {
      seen.add(symbol);
      return [];
    }
    const what = { code: 'duplicate_value', message: 'duplicate symbol' };
    return [document.problem(['spec', 'universe', 'symbols', index], what)];
  });
}

function sourceProblems(
  data: unknown,
  listed: readonly unknown[],
  document: SourceDocument,
): Problem[] {
  const at: Path = ['spec', 'data'];
  const choice = choiceProblems(data, ['source', 'sources'], DATA_FIELDS, at, document);
  const symbols = listed.filter((symbol) => typeof symbol === 'string');
  if (choice.length > 0 || symbols.length !== listed.length || symbols.length === 0) return choice;

  const { source, sources } = fieldsOf(data);
  if (source !== undefined) {
    const message = `one file for ${symbols.length} symbols; use sources with a file for each symbol`;
    const what = { code: 'conflicting_fields', message };
    return symbols.length === 1 ? [] : [document.problem([...at, 'source'], what)];
  }
  if (!isFields(sources)) return [];
  const without = symbols.filter((symbol) => !Object.hasOwn(sources, symbol));
  const known = new Set(symbols);
  const unknown = Object.keys(sources).filter((symbol) => !known.has(symbol));
  // Comparing names is slow, and with many symbols missing they are hardly typos.
  const meant = without.length > 20 ? [] : without;
  return [
    ...without.map((symbol) =>
      document.problem([...at, 'sources', symbol], {
        code: 'missing_field',
        message: `no file for symbol ${symbol}`,
      }),
    ),
    ...unknown.map((symbol) =>
      document.problem(
        [...at, 'sources', symbol],
        {
          code: 'unknown_symbol',
          message: 'symbol is not in universe.symbols',
          ...optional(closest(symbol, meant)),
        },
        'key',
      ),
    ),
  ];
}

function windowProblems({ from, to }: Fields, document: SourceDocument): Problem[] {
  if (typeof from !== 'string' || typeof to !== 'string') return [];
  try {
    parseWindow(from, undefined);
    parseWindow(undefined, to);
  } catch {
    return []; // The schema reports an invalid date.
  }
  try {
    parseWindow(from, to);
    return [];
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const what = { code: 'invalid_value', message: error.message };
    return [document.problem(['spec', 'data', 'to'], what)];
  }
}

function messageProblems(risk: Fields, document: SourceDocument): Problem[] {
  const { max_messages_per_second: most, messages_kept_for_cancels: kept } = risk;
  if (typeof kept !== 'number' || (typeof most === 'number' && kept < most)) return [];
  const message =
    typeof most === 'number'
      ? `must be less than max_messages_per_second (${most}), or no messages are left for orders`
      : 'requires max_messages_per_second, of which it is a part';
  const at: Path = ['spec', 'risk', 'messages_kept_for_cancels'];
  return [document.problem(at, { code: 'invalid_value', message })];
}

function marginProblems({ initial, maintenance }: Fields, document: SourceDocument): Problem[] {
  if (typeof initial !== 'number' || typeof maintenance !== 'number') return [];
  if (maintenance <= initial) return [];
  const message = `must be at most initial (${initial}), or every new position gets a margin call`;
  const at: Path = ['spec', 'engine', 'account', 'maintenance'];
  return [document.problem(at, { code: 'invalid_value', message })];
}

function strategyChoiceProblems(strategy: unknown, document: SourceDocument): Problem[] {
  const at: Path = ['spec', 'strategy'];
  const choice = choiceProblems(strategy, ['name', 'module'], STRATEGY_FIELDS, at, document);
  const { name } = fieldsOf(strategy);
  if (choice.length > 0 || typeof name !== 'string') return choice;

  const builtIn = BUILT_IN_STRATEGIES.get(name);
  if (builtIn !== undefined) return strategyProblems(builtIn, document);
  const known = [...BUILT_IN_STRATEGIES.keys()];
  return [
    document.problem([...at, 'name'], {
      code: 'unknown_strategy',
      message: `unknown strategy ${JSON.stringify(name)}; built-in strategies: ${known.join(', ')}`,
      ...optional(closest(name, known)),
    }),
  ];
}

function gateProblems(metrics: unknown, document: SourceDocument): Problem[] {
  return listOf(metrics).flatMap((gate, index) => {
    const { name, min, max } = fieldsOf(gate);
    if (typeof name !== 'string' || !isMetric(name)) return [];
    const at: Path = ['spec', 'metrics', index];
    if (min === undefined && max === undefined) {
      const message = 'missing field min (or max): a gate needs at least one bound';
      return [document.problem([...at, 'min'], { code: 'missing_field', message })];
    }
    if (typeof min === 'number' && typeof max === 'number' && min > max) {
      const what = { code: 'gate_cannot_pass', message: `must be at least min (${min})` };
      return [document.problem([...at, 'max'], what)];
    }
    const bounds = { min: numberOf(min), max: numberOf(max) };
    return gatesOfSpec([{ name, ...bounds }]).flatMap((assertion) => {
      const bound = [...at, assertion.op === '>=' ? 'min' : 'max'];
      const always = impossibleToFail(assertion);
      if (always) return [document.problem(bound, { code: 'gate_cannot_fail', message: always })];
      const never = impossibleToPass(assertion);
      if (never) return [document.problem(bound, { code: 'gate_cannot_pass', message: never })];
      return [];
    });
  });
}

const ACCOUNT_FOR_SHORTS = '{model: margin, initial: 0.5, maintenance: 0.25}';
const DATA_FIELDS = [
  'source',
  'sources',
  'timeframe',
  'from',
  'to',
  'columns',
  'time_format',
  'repair',
];
const STRATEGY_FIELDS = ['name', 'module', 'params'];

/** Requires exactly one of two fields. An unknown field may be a misspelling of either. */
function choiceProblems(
  value: unknown,
  [one, other]: readonly [string, string],
  known: readonly string[],
  at: Path,
  document: SourceDocument,
): Problem[] {
  if (!isFields(value)) return [];
  const count = [one, other].filter((field) => value[field] !== undefined).length;
  if (count === 2) {
    const what = { code: 'conflicting_fields', message: `give ${one} or ${other}, not both` };
    return [document.problem([...at, other], what, 'key')];
  }
  if (count === 1 || Object.keys(value).some((field) => !known.includes(field))) return [];
  const what = { code: 'missing_field', message: `missing field ${one} (or ${other})` };
  return [document.problem([...at, one], what)];
}

function pathTo(parent: Path, key: string | undefined): Path {
  return key === undefined ? parent : [...parent, key];
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
