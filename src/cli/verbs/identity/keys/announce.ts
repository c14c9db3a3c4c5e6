import type { createStepUp } from '../../../../api/administrators.ts';
import type { announceKey } from '../../../../api/keys.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { ask } from '../../../ask.ts';
import { connect } from '../../../connect.ts';
import { NEEDS_ADMIN } from '../../../scopes.ts';
import { CODE_OPTION } from '../../../step-up.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'sign the next signing key with the current one, without a trust root',
  description: `For issuers without a trust root. Run it while the server still signs with its current key. That key then endorses the next key, so that machines with the current key accept the next one. Restart the server with the next key only after all machines have renewed. A machine that has not renewed rejects the new key until it is passed with \`license renew --keyset\`. ${NEEDS_ADMIN}`,
  options: {
    key: {
      value: 'key',
      description: 'public key of the next signing key, as `identity keys generate` prints it',
      required: true,
    },
    code: CODE_OPTION,
  },
  settings: ['server_url'],
  examples: ['identity keys announce --key=11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'],
  async run(context, _args, { key: x, code }) {
    if (!/^[\w-]{43}$/.test(x)) {
      throw new ServiceError('usage', `--key ${x} is not a public key of 43 characters`, {
        remedy: 'Copy the public key that `service-local identity keys generate` prints.',
      });
    }
    const { publicKeyId } = await import('../../../../lease/keys.ts');
    const server = await connect(context);
    const { step_up_token } = await server.call<typeof createStepUp>('post', '/identity/step-ups', {
      body: {
        action: 'identity.root.set',
        target: `key:${publicKeyId(x)}`,
        code: code ?? (await ask(context, 'Code from your authenticator:', '--code')),
      },
    });
    const announced = await server.call<typeof announceKey>('post', '/identity/keys', {
      headers: { 'service-step-up': step_up_token },
      body: { x },
    });
    return {
      data: announced,
      show(out) {
        const { public_key_id, endorsed_by, keyset_version } = announced;
        out.line(`${endorsed_by} endorses ${public_key_id}, in keyset ${keyset_version}.`);
      },
    };
  },
});
