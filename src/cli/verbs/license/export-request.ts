import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { isJsonObject } from '../../../lease/json.ts';
import { licenseFiles } from '../../../gate/license-files.ts';
import { OFFLINE_REQUEST_TYPE } from '../../../base/proof-claims.ts';
import { checkOutFile, writeOutFile } from '../../out-file.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'ask for a lease on a machine without a network',
  description:
    'For a machine without a network: writes a signed request for its next lease, which an administrator answers with `identity leases issue --request`. Makes a key for this machine when it has none; that never leaves it. Until the answer is imported, running it again asks for the same renewal. A request that is there is replaced; any other file is not.',
  options: {
    out: { value: 'file', description: 'where to put it', required: true, complete: 'file' },
    name: { value: 'text', description: 'what people call this machine', default: hostname() },
  },
  examples: ['license export-request --out request.jwt'],
  async run({ cwd, settings, io }, _args, { out: file, name }) {
    const { exportRequest } = await import('../../../../daemon/offline.ts');
    const path = resolve(cwd, file);
    const files = licenseFiles(settings.home, io.env);
    const out = { path, kind: 'the request of a machine', isOne: isRequest };
    await checkOutFile(out);
    const { jwt, ...request } = await exportRequest(files, name, Date.now());
    // By now the key of this machine may be there.
    await checkOutFile(out);
    await writeOutFile(out, `${jwt}\n`);
    return {
      data: { ...request, file: path },
      show(output) {
        output.line(`${path} asks for a lease for the device ${request.device_id}.`);
        output.line('Bring it to an administrator, and what comes back to this machine:');
        output.line(
          '  service-local identity leases issue --deployment ID --request FILE --out lease.json',
        );
        output.line('  service-local license import lease.json');
      },
    };
  },
});

function isRequest(text: string): boolean {
  try {
    const header: unknown = JSON.parse(Buffer.from(text.split('.')[0]!, 'base64url').toString());
    return isJsonObject(header) && header['typ'] === OFFLINE_REQUEST_TYPE;
  } catch {
    return false;
  }
}
