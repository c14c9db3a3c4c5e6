import type { deletePasskey } from '../../../../api/account.ts';
import type { createStepUp } from '../../../../api/administrators.ts';
import { ask } from '../../../ask.ts';
import { showItems } from '../../../show-items.ts';
import { PASSKEY_COLUMNS } from '../../../account.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'delete a passkey permanently',
  description:
    'Deletes one of your passkeys from the server, so that it can no longer be used to sign in. The device keeps its own copy.',
  arguments: { passkey: { description: 'id of the passkey, as list shows it' } },
  options: {
    code: {
      value: 'digits',
      description: 'code of your authenticator, or a recovery code, instead of a prompt',
    },
  },
  examples: [
    'identity passkeys delete 0198c0de-0000-7000-8000-00000000dddd',
    'identity passkeys delete 0198c0de-0000-7000-8000-00000000dddd --code 123456',
  ],
  async run(server, { passkey: passkey_id }, { code }, context) {
    const { step_up_token } = await server.call<typeof createStepUp>('post', '/identity/step-ups', {
      body: {
        action: 'identity.passkey.delete',
        target: `passkey:${passkey_id}`,
        code: code ?? (await ask(context, 'Code from your authenticator:', '--code')),
      },
    });
    const path = '/identity/passkeys/{passkey_id}';
    const deleted = await server.call<typeof deletePasskey>('delete', path, {
      params: { passkey_id },
      headers: { 'service-step-up': step_up_token },
    });
    return { data: deleted, show: (out) => showItems(out, [deleted], PASSKEY_COLUMNS) };
  },
});
