/**
 * `npm run simulate:day -- SEED [LAST]`: simulates the trading day of a seed and prints what happened,
 * or the days of all seeds up to LAST and prints which violate an invariant. See `day/simulate.ts`.
 */
import process, { argv } from 'node:process';
import { simulateDay } from './day/simulate.ts';

const [first = 1, last = first] = argv.slice(2).map(Number);
let failed = 0;
for (let seed = first; seed <= last; seed += 1) {
  const { lines, violations, traceHash } = await simulateDay(seed);
  if (first === last) console.log(lines.join('\n'));
  if (violations.length > 0) failed += 1;
  for (const { time, what } of violations) console.log(`seed ${seed} at ${time}: ${what}`);
  if (first === last) console.log(`trace ${traceHash}`);
}
console.log(`${failed} of ${last - first + 1} days violate an invariant`);
process.exitCode = failed > 0 ? 1 : 0;
