import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { isSystemError, ServiceError } from '../../errors.ts';
import { licenseFiles } from '../../license-files.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'For a machine without a network: writes a signed request for its next lease, which an administrator answers with `identity leases issue --request`. Makes a key for this machine when it has none; that never leaves it. Until the answer is imported, running it again asks for the same lease.',
  options: {
    out: { value: 'file', description: 'where to put it', required: true, complete: 'file' },
    name: { value: 'text', description: 'what people call this machine', default: hostname() },
  },
  examples: ['license export-request --out request.jwt'],
  async run({ cwd, settings, io }, _args, { out: file, name }) {
    const { exportRequest } = await import('../../../daemon/offline.ts');
    const path = resolve(cwd, file);
    const files = licenseFiles(settings.home, io.env);
    const { jwt, ...request } = await exportRequest(files, name, Date.now());
    await write(path, `${jwt}\n`);
    return {
      data: { ...request, file: path },
      show(out) {
        out.line(`${path} asks for a lease for the device ${request.device_id}.`);
        out.line('Bring it to an administrator, and what comes back to this machine:');
        out.line(
          '  service-local identity leases issue --deployment ID --request FILE --out lease.json',
        );
        out.line('  service-local license import lease.json');
      },
    };
  },
});

async function write(path: string, text: string): Promise<void> {
  const { writeAtomically } = await import('../../atomic-file.ts');
  try {
    await writeAtomically(path, [text]);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('output_not_writable', `cannot write ${path} (${error.code})`, {
      remedy: 'Name a file in a directory that is there and that you may write to.',
      cause: error,
    });
  }
}
