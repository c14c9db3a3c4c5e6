/**
 * A program with a license gate: `node gated-program.ts [ROOT [PRODUCT [MACHINE]]]`, where `-` stands
 * for the default and MACHINE for the hash of the machine id. Prints the status at the start and
 * at every change, and for each line of its input, the name of a feature, what the gate decides.
 */
import { createInterface } from 'node:readline';
import { openLicenseGate, type GateStatus } from '../../src/gate/api.ts';

const print = (kind: string, value: unknown): void => {
  process.stdout.write(`${JSON.stringify({ [kind]: value })}\n`);
};
const printStatus = ({ lease, refused, trust }: GateStatus): void =>
  print('status', { lease: lease?.lease_id ?? null, refused, trust });

const [root, product, machine] = process.argv
  .slice(2)
  .map((text) => (text === '-' ? undefined : text));
const gate = await openLicenseGate({
  enforced: true,
  onChange: printStatus,
  ...(root !== undefined && { root }),
  ...(product !== undefined && { product }),
  ...(machine !== undefined && { machineHash: async () => machine }),
});
printStatus(gate.status());
for await (const feature of createInterface(process.stdin)) print('decision', gate.check(feature));
await gate.close();
