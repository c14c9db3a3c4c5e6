import type { KeyState, listKeys } from '../../../../api/keys.ts';
import { formatCountOf } from '../../../../base/format.ts';
import { NEEDS_ADMIN } from '../../../scopes.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'show the progress of a key rotation',
  description: `A rotation begins when the server starts with a new key, and ends when the old one is retired. ${NEEDS_ADMIN}`,
  examples: ['identity keys rotate-status', 'identity keys rotate-status --json'],
  async run(server) {
    const { items } = await server.call<typeof listKeys>('get', '/identity/keys', {});
    const active = items.find(({ status }) => status === 'active');
    const retiring = items.filter(({ status }) => status === 'retiring');
    const pending = items.filter(({ status }) => status === 'pending');
    const withdrawn = items.filter(({ status, in_keyset }) => status === 'retired' && in_keyset);
    const isToSign = pending.length > 0 || withdrawn.length > 0;
    const { SIGN_COMMAND } = await import('../../../../identity/published-trust.ts');
    return {
      data: {
        active: active ?? null,
        retiring,
        pending,
        next_command: isToSign ? SIGN_COMMAND : null,
      },
      show(out) {
        out.line(
          active
            ? `${active.public_key_id} signs since ${active.activated_at}.`
            : 'No key signs. Start the server with a key; see `service-local identity keys generate`.',
        );
        if (retiring.length === 0) out.line('No rotation is in progress.');
        for (const key of retiring) out.line(progressOf(key));
        for (const { public_key_id } of pending) {
          out.line(
            `${public_key_id} does not sign yet, because the signed keyset does not contain it.`,
          );
        }
        for (const { public_key_id } of withdrawn) {
          out.line(`${public_key_id} is retired, but the signed keyset still contains it.`);
        }
        if (isToSign) out.line(`Run this on the machine with the root key: ${SIGN_COMMAND}`);
      },
    };
  },
});

function progressOf({ public_key_id, outstanding_leases, retirable_at }: KeyState): string {
  return outstanding_leases === 0
    ? `${public_key_id} can be retired: no lease under it is still valid.`
    : `${public_key_id} can be retired from ${retirable_at} on. Until then, ${formatCountOf(outstanding_leases, 'lease')} under it could be in use.`;
}
