import { NO_RISK_LIMITS, type EngineConfig } from '../../../src/engine/config.ts';
import type { Step } from '../../../src/engine/steps.ts';
import {
  openSandbox,
  type Sandbox,
  type SandboxOptions,
} from '../../../src/trading/sandbox/sandbox.ts';

export const CONFIG: EngineConfig = {
  cash: 100_000,
  fill: { model: 'next_open' },
  units: 'fractional',
  fees: { model: 'none' },
  slippage: { model: 'none' },
  account: { model: 'cash' },
  risk: NO_RISK_LIMITS,
  seed: 7,
};

/** Blocks forever without using the processor. */
export const WAIT = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';

/**
 * A strategy that runs this code on each bar.
 *
 * @param top code at the top of the module.
 */
export function strategyThat(onBar: string, top = '', create = ''): string {
  return `import { defineStrategy } from 'service-local/strategy';
${top}
export default defineStrategy({
  name: 'own',
  description: 'Of a test.',
  params: {},
  create({ instruments, broker, log }) {
    ${create}
    return { onBar() { ${onBar} } };
  },
});
`;
}

export const STEPS: readonly Step[] = [1, 2, 3].map((time) => ({
  time,
  bars: { A: { open: 10, high: 12, low: 9, close: 11, volume: 1 } },
}));

export function open(text: string, options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  return openSandbox({
    files: { 'own.ts': text },
    entry: 'own.ts',
    symbols: ['A'],
    params: {},
    config: CONFIG,
    timeoutMs: 5000,
    memoryMb: 256,
    ...options,
  });
}
