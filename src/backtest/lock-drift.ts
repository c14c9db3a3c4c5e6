import type { Lock } from './summary.ts';

/** Differences between two locks, one line for each part; empty if they are equal. */
export function driftOf(before: Lock, after: Lock): string[] {
  const lines: string[] = [];
  if (before.spec !== after.spec) lines.push('the spec changed');
  if (typeof before.strategy === 'string' || typeof after.strategy === 'string') {
    if (nameOf(before.strategy) !== nameOf(after.strategy)) {
      lines.push(
        `the strategy changed from ${nameOf(before.strategy)} to ${nameOf(after.strategy)}`,
      );
    }
  } else {
    lines.push(...changes('strategy file', before.strategy, after.strategy));
  }
  lines.push(...changes('data of', before.data, after.data));
  lines.push(...changes('bars before the run of', before.warm_up ?? {}, after.warm_up ?? {}));
  if (before.benchmark !== after.benchmark) lines.push('the bars of the benchmark changed');
  lines.push(...changes('model', before.models?.files ?? {}, after.models?.files ?? {}));
  const [computed, computes] = [before.models?.runtime, after.models?.runtime];
  if (computed !== computes && computed !== undefined && computes !== undefined) {
    lines.push(`the runtime of models changed from ${computed} to ${computes}`);
  }
  if (before.engine !== after.engine) {
    lines.push(`the engine changed from ${before.engine} to ${after.engine}`);
  }
  if (before.seed !== after.seed) {
    lines.push(`the seed changed from ${before.seed} to ${after.seed}`);
  }
  return lines;
}

function nameOf(strategy: Lock['strategy']): string {
  return typeof strategy === 'string' ? strategy : Object.keys(strategy).join(', ');
}

type Digests = Readonly<Record<string, string>>;

function changes(what: string, before: Digests, after: Digests): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  return names.flatMap((name) => {
    if (!Object.hasOwn(after, name)) return `${what} ${name}: removed`;
    if (!Object.hasOwn(before, name)) return `${what} ${name}: added`;
    return before[name] === after[name] ? [] : `${what} ${name}: changed`;
  });
}
