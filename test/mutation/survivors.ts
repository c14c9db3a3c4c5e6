/** Mutants that no test catches, by name, and why they may stay. */
export const SURVIVORS: Readonly<Record<string, string>> = {
  "daemon/materialize.ts: constant: '' → 'mutant' (5)":
    'equivalent: without given keys there is no fault, and neither text holds keys',
  "daemon/loop.ts: condition is true: this.#license.isOutdated || !(['lease', 'backup', 'keyset', 'root'] as const).ev… → true":
    'equivalent: reading unchanged files again has the same result',
  'src/fleet/halts/halt.ts: condition is false: performance.now() > tryUntil → false':
    'retries end after 15 seconds instead of with the outage, long after the halt was answered',
  'src/fleet/halts/halt.ts: constant: 0 → 1 (4)': 'equivalent: the shortest timer takes 1 ms',
};
