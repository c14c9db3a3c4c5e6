/**
 * A program with a license gate: opens it on the files of SERVICE_LOCAL_HOME and prints what it
 * decides about `live_trading`. Arguments: the product, and the hash of the machine, each `-` for the
 * default.
 */
import { openLicenseGate } from '../../src/gate/api.ts';

const [product, machine] = process.argv.slice(2).map((text) => (text === '-' ? undefined : text));
const gate = await openLicenseGate({
  enforced: true,
  ...(product !== undefined && { product }),
  ...(machine !== undefined && { machineHash: async () => machine }),
});
const { state, refused } = gate.status();
console.log(JSON.stringify({ decision: gate.check('live_trading'), state, refused }));
await gate.close();
