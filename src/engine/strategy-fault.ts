import { resolveParams } from './params.ts';
import type { Strategy } from './strategy.ts';

/** The reason for which a module's default export is not a strategy; undefined if it is one. */
export function strategyFault(exported: unknown): string | undefined {
  if (typeof exported !== 'object' || exported === null) return 'has no strategy as default export';
  const { name, description, params, create, instruments, signals } = exported as Partial<Strategy>;
  if (typeof name !== 'string' || !/^[a-z0-9]+(_[a-z0-9]+)*$/.test(name)) {
    return 'the name of its strategy must be lower-case words joined by underscores';
  }
  if (typeof description !== 'string') return `strategy ${name} has no description`;
  if (typeof create !== 'function') return `strategy ${name} has no function create`;
  if (typeof params !== 'object' || params === null) return `strategy ${name} has no params`;
  const odd = Object.entries(params).find(([, param]) => !isParam(param));
  if (odd) return `parameter ${odd[0]} is not made by integer(), number(), choice() or flag()`;
  const wrong = resolveParams(params, {}).problems[0];
  if (wrong) return `the default of parameter ${wrong.key} ${wrong.message}`;
  if (instruments !== undefined && !(instruments.min >= 1 && instruments.max >= instruments.min)) {
    return `strategy ${name} needs instruments.min of at least 1 and at most instruments.max`;
  }
  const isNames = Array.isArray(signals) && signals.every((signal) => typeof signal === 'string');
  if (signals !== undefined && !isNames) return `strategy ${name} has signals that are no names`;
  return undefined;
}

function isParam(param: unknown): boolean {
  const { kind, choices } = (param ?? {}) as { kind?: unknown; choices?: unknown };
  if (kind === 'choice') return Array.isArray(choices);
  return kind === 'integer' || kind === 'number' || kind === 'flag';
}
