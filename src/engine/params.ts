/**
 * A strategy declares its parameters once; validation of specs, sweeps, `init` and the types
 * that the strategy's own code sees all follow from that declaration.
 */
export type Param = NumberParam | ChoiceParam | FlagParam;

export interface NumberParam {
  readonly kind: 'integer' | 'number';
  readonly default: number;
  readonly min?: number;
  readonly max?: number;
  readonly description?: string;
}

export interface ChoiceParam<T extends string = string> {
  readonly kind: 'choice';
  readonly default: T;
  readonly choices: readonly T[];
  readonly description?: string;
}

export interface FlagParam {
  readonly kind: 'flag';
  readonly default: boolean;
  readonly description?: string;
}

/** Declared parameters of a strategy, by name. */
export type Params = Readonly<Record<string, Param>>;

/** The values a strategy sees: numbers, strings of the choices, booleans. */
export type ParamValues<P extends Params> = { readonly [K in keyof P]: ValueOf<P[K]> };

type ValueOf<T extends Param> = T extends NumberParam
  ? number
  : T extends ChoiceParam<infer Choice>
    ? Choice
    : boolean;

type Bounds = Omit<NumberParam, 'kind'>;

/** Declares a parameter whose values are whole numbers. `min` and `max` are inclusive. */
export const integer = (bounds: Bounds): NumberParam =>
  Object.freeze({ kind: 'integer', ...bounds });
/** Declares a parameter whose values are finite numbers. `min` and `max` are inclusive. */
export const number = (bounds: Bounds): NumberParam => Object.freeze({ kind: 'number', ...bounds });
/** Declares a parameter that is true or false. */
export const flag = (value: Omit<FlagParam, 'kind'>): FlagParam =>
  Object.freeze({ kind: 'flag', ...value });
/** Declares a parameter that is one of the texts in `choices`. */
export const choice = <const T extends string>(
  value: Omit<ChoiceParam<T>, 'kind'>,
): ChoiceParam<T> =>
  Object.freeze({ kind: 'choice', ...value, choices: Object.freeze([...value.choices]) });

/** Parses a value from a command line. Text that does not parse is returned unchanged, and `resolveParams` rejects it. */
export function paramFromText(param: Param | undefined, text: string): number | string | boolean {
  switch (param?.kind) {
    case 'integer':
    case 'number':
      return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text);
    case 'flag':
      return text === 'true' || (text === 'false' ? false : text);
    case 'choice':
    case undefined:
      return text;
    default:
      return param satisfies never;
  }
}

/** A fault in the parameters of a strategy; without `key`, their combination is invalid. */
export interface ParamProblem {
  readonly key?: string;
  readonly code: 'unknown_param' | 'invalid_param';
  readonly message: string;
}

/** Fills in defaults and reports every fault at once; `values` is complete only when `problems` is empty. */
export function resolveParams<P extends Params>(
  declared: P,
  given: Readonly<Record<string, unknown>>,
): { values: ParamValues<P>; problems: ParamProblem[] } {
  const problems: ParamProblem[] = [];
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(declared, key)) {
      const known = Object.keys(declared).join(', ') || 'none';
      problems.push({
        key,
        code: 'unknown_param',
        message: `unknown parameter; the strategy has: ${known}`,
      });
    }
  }
  const values: Record<string, unknown> = {};
  for (const [key, param] of Object.entries(declared)) {
    const value = Object.hasOwn(given, key) ? given[key] : param.default;
    const fault = faultOf(param, value);
    if (fault !== undefined) problems.push({ key, code: 'invalid_param', message: fault });
    values[key] = value;
  }
  return { values: values as ParamValues<P>, problems };
}

function faultOf(param: Param, value: unknown): string | undefined {
  switch (param.kind) {
    case 'integer':
    case 'number': {
      if (typeof value !== 'number') return `must be a number, not ${JSON.stringify(value)}`;
      if (!Number.isFinite(value)) return `must be a finite number, not ${value}`;
      if (param.kind === 'integer' && !Number.isInteger(value))
        return `must be a whole number, not ${value}`;
      if (param.min !== undefined && value < param.min)
        return `must be at least ${param.min}, not ${value}`;
      if (param.max !== undefined && value > param.max)
        return `must be at most ${param.max}, not ${value}`;
      return undefined;
    }
    case 'choice':
      return param.choices.includes(value as string)
        ? undefined
        : `must be one of ${param.choices.join(', ')}, not ${JSON.stringify(value)}`;
    case 'flag':
      return typeof value === 'boolean'
        ? undefined
        : `must be true or false, not ${JSON.stringify(value)}`;
    default:
      return param satisfies never;
  }
}
