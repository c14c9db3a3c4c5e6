import { valueOf } from '../backtest/gates.ts';
import type { Gate, Summary } from '../backtest/summary.ts';
import { ServiceError } from '../base/errors.ts';

/** What a verb that shows a result fails with, where a gate is not met. */
export function gateFailure({ gates }: Summary): ServiceError | undefined {
  const missed = gates.filter(({ pass }) => !pass);
  if (missed.length === 0) return undefined;
  const text = (gate: Gate): string =>
    `${gate.name} ${gate.op} ${gate.threshold} (is ${valueOf(gate)})`;
  return new ServiceError('gate_not_met', missed.map(text).join(', '), {
    remedy: 'Look at the report before you loosen a gate.',
  });
}
