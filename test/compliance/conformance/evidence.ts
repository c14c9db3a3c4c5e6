/** Prints the evidence hash of a run: `node evidence.ts SEED CASE,CASE`. */
import { runConformance } from '../../../src/compliance/conformance/run-conformance.ts';
import { correct } from '../bots/bots.ts';

const [seed, cases] = process.argv.slice(2) as [string, string];
const result = await runConformance(correct, { seed: Number(seed), cases: cases.split(',') });
console.log(result.evidence_hash);
