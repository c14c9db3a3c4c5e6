import type { createToken } from '../../../../api/administrators.ts';
import { ask, readPassword, PASSWORD_STDIN_OPTION } from '../../../ask.ts';
import { parseScopes, SCOPES_HELP } from '../../../scopes.ts';
import { parseSeconds } from '../../../../base/seconds.ts';
import { parseTokenLifetime } from '../../../../base/token-lifetime.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'create a token for a script',
  description: `Logs in with a password and a code, and prints a token to stdout. It is shown only once; other commands read it from SERVICE_LOCAL_TOKEN. For interactive use, \`service-local login\` stores a token in a file.\n\nA token whose only scope is license can be restricted to installations or a customer, and to a maximum TTL. Such a token can only issue leases and enrollment codes for these, and show and revoke what belongs to them.\n\n${SCOPES_HELP}`,
  options: {
    administrator: { value: 'name', description: 'administrator who logs in', required: true },
    scopes: {
      value: 'scopes',
      description: 'scopes of the token, such as license,admin',
      parse: parseScopes,
      required: true,
    },
    label: { value: 'text', description: 'purpose of the token', default: 'command line' },
    expires: {
      value: 'length',
      description: 'lifetime of the token: up to 365d, or never (default: 30d)',
      parse: (text: string) => (text === 'never' ? null : parseTokenLifetime(text)),
    },
    deployment: {
      value: 'id',
      description: 'restrict the token to this installation; repeat it for several',
      repeat: true,
    },
    customer: {
      value: 'id',
      description: 'restrict the token to the installations of this customer',
    },
    maxTtl: {
      value: 'length',
      description: 'maximum TTL of leases issued with the token, such as 7d',
      parse: parseSeconds,
    },
    passwordStdin: PASSWORD_STDIN_OPTION,
    code: {
      value: 'digits',
      description: 'code of the authenticator app, or a recovery code, instead of a prompt',
    },
  },
  settings: ['server_url'],
  examples: [
    'identity tokens create --administrator ada --scopes license,admin',
    'identity tokens create --administrator ada --scopes license --label CI --expires 90d --password-stdin --code 123456 < password.txt',
    'identity tokens create --administrator ada --scopes license --deployment acme-tokyo --max-ttl 7d',
  ],
  async run(context, _args, options) {
    const { administrator, scopes, label, expires, passwordStdin, code } = options;
    const { deployment, customer, maxTtl } = options;
    const { createClient } = await import('../../../../client/client.ts');
    const server = createClient({ url: context.settings.server_url, warn: context.message });
    const password = await readPassword(context, passwordStdin, `Password of ${administrator}:`);
    const made = await server.call<typeof createToken>('post', '/identity/tokens', {
      body: {
        administrator,
        password,
        code: code ?? (await ask(context, 'Code of the app, or a recovery code:', '--code')),
        label,
        scopes,
        expires_in_seconds: expires,
        ...(deployment.length > 0 && { deployment_ids: [...deployment] }),
        customer_id: customer,
        max_ttl_seconds: maxTtl,
      },
    });
    const until = made.expires_at === null ? 'without an expiry' : `until ${made.expires_at}`;
    context.message(`token ${made.token_id}: ${made.scopes.join(', ')} ${until}`);
    return { data: made, show: (out) => out.line(made.token) };
  },
});
