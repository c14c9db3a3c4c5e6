import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { isJsonObject } from '../../../lease/json.ts';
import { licenseFiles } from '../../../gate/license-files.ts';
import { OFFLINE_REQUEST_TYPE } from '../../../base/proof-claims.ts';
import { checkOutFile, writeOutFile } from '../../out-file.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'write a lease request on a machine without a network',
  description:
    'Writes a signed request for the next lease of a machine without a network. An administrator issues the lease with `identity leases issue --request`. Creates a key for this machine if it has none; the key never leaves the machine. Until the lease is imported, further requests are for the same renewal. Replaces an existing request, but no other file.',
  options: {
    out: { value: 'file', description: 'file for the request', required: true, complete: 'file' },
    name: { value: 'text', description: 'display name of this machine', default: hostname() },
  },
  examples: ['license export-request --out request.jwt'],
  async run({ cwd, settings, io }, _args, { out: file, name }) {
    const { exportRequest } = await import('../../../../daemon/offline.ts');
    const path = resolve(cwd, file);
    const files = licenseFiles(settings.home, io.env);
    const out = { path, kind: 'the request of a machine', isOne: isRequest };
    await checkOutFile(out);
    const { jwt, ...request } = await exportRequest(files, name, Date.now());
    // Read again, because the request can have created the key of this machine.
    await checkOutFile(out);
    await writeOutFile(out, `${jwt}\n`);
    return {
      data: { ...request, file: path },
      show(output) {
        output.line(`${path} requests a lease for the device ${request.device_id}.`);
        output.line(
          'Take it to an administrator, and bring the issued lease back to this machine:',
        );
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
