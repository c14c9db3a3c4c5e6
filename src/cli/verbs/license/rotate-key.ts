import { licenseFiles } from '../../../gate/license-files.ts';
import { INSECURE } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'give this device a new key',
  description:
    'Makes a new key pair for this machine, which takes the place of the old one. The server refuses the old one once the new one is first used, at the next renewal. When it is interrupted, run it again.',
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
        out.line(`${files.key} holds a new key: this is now the device ${rotated.device_id}.`);
        out.line(
          `The server refuses the former key ${rotated.replaces} once this machine has renewed its lease.`,
        );
      },
    };
  },
});
