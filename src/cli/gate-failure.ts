import { valueOf } from '../backtest/gates.ts';
import type { Gate, Summary } from '../backtest/summary.ts';
import { ServiceError } from '../base/errors.ts';

export function gateFailure({ gates }: Pick<Summary, 'gates'>): ServiceError | undefined {
  const missed = gates.filter(({ pass }) => !pass);
  if (missed.length === 0) return undefined;
  const text = (gate: Gate): string =>
    `${gate.name} ${gate.op} ${gate.threshold} (is ${valueOf(gate)})`;
  return new ServiceError('gate_not_met', missed.map(text).join(', '), {
    remedy: 'Read the report before you relax a gate.',
  });
}
