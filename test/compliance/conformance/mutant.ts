/** Plays the catalogue and prints the expectations that fail, by the sources beside it. */
import { CATALOGUE } from '../../../src/compliance/conformance/case-catalogue.ts';
import { runConformance } from '../../../src/compliance/conformance/run-conformance.ts';
import { correct, noLimits, twoInstruments } from '../bots/bots.ts';

/** Expectations that fail without a fault; undefined to find them. */
const known = process.argv[2]?.split('\n');
const found: string[] = [];
const ids = CATALOGUE.map(({ id }) => id);
const runs = [
  ['correct', correct, ids],
  ['noLimits', noLimits, ids],
  ['twoInstruments', twoInstruments, ['B08']],
] as const;
search: for (const [name, bot, cases] of runs) {
  for (const id of cases) {
    const result = await runConformance(bot, { seed: 7, cases: [id] });
    const { status, reason } = result.cases[0]!;
    if (status !== 'fail' && status !== 'inconclusive') continue;
    // Compared without numbers, which differ between runs.
    const faults = reason!.replaceAll(/[\d.]+|\[.*?\]/g, '').split('; ');
    found.push(...faults.map((fault) => `${name} ${id} ${fault}`));
    if (known !== undefined && faults.some((fault) => !known.includes(`${name} ${id} ${fault}`)))
      break search;
  }
}
console.log(JSON.stringify(found));
// A fault may leave timers.
process.exit(0);
