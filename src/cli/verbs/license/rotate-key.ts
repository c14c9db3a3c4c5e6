import { licenseFiles } from '../../../gate/license-files.ts';
import { INSECURE } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'replace the key of this machine',
  description:
    'Creates a new key pair for this machine, which replaces the old one. The server rejects the old key after the new key is first used, at the next renewal. After an interruption, run it again.',
  options: { insecure: INSECURE },
  settings: ['server_url'],
  examples: ['license rotate-key'],
  async run({ settings, io, message }, _args, { insecure }) {
    const { rotateKey } = await import('../../../client/enrollment.ts');
    const files = licenseFiles(settings.home, io.env);
    const rotated = await rotateKey({
      files,
      url: settings.server_url,
      insecure: insecure || settings.server_insecure,
      clock: Date.now,
      warn: message,
    });
    return {
      data: rotated,
      show(out) {
        out.line(
          `${files.key} contains a new key: this machine is now the device ${rotated.device_id}.`,
        );
        out.line(
          `The server rejects the former key ${rotated.replaces} after the next renewal of this machine.`,
        );
      },
    };
  },
});
