import { hostname } from 'node:os';
import type { createToken } from '../../api/administrators.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Scope } from '../../base/scopes.ts';
import { parseTokenLifetime } from '../../base/token-lifetime.ts';
import { ask, readPassword, PASSWORD_STDIN_OPTION } from '../ask.ts';
import { endToken } from '../end-token.ts';
import { parseScopes, SCOPES_HELP } from '../scopes.ts';
import { defineVerb, type Context } from '../verb.ts';

const USUAL_SCOPES: readonly Scope[] = ['read', 'write'];
const USUAL_SECONDS = 12 * 3600;

export const verb = defineVerb({
  summary: 'log in to a server',
  description: `Asks for a password and a code, and stores a token in a file that only you can read. Other commands send the token to that server only. SERVICE_LOCAL_TOKEN takes precedence if it is set. Only one login exists at a time: logging in ends the token of the previous login.\n\n${SCOPES_HELP}`,
  options: {
    name: { value: 'name', description: 'name of the administrator; prompted for if absent' },
    scopes: {
      value: 'scopes',
      description: `scopes of the token (default: ${USUAL_SCOPES.join(',')})`,
      parse: parseScopes,
    },
    expires: {
      value: 'length',
      description: 'lifetime of the token, up to 365d (default: 12h)',
      parse: parseTokenLifetime,
    },
    passwordStdin: PASSWORD_STDIN_OPTION,
    code: {
      value: 'digits',
      description: 'code of the authenticator app, or a recovery code; prompted for if absent',
    },
  },
  settings: ['server_url'],
  examples: [
    'login',
    'login --url https://bots.example --name ada --scopes read,write,license',
    'login --name ada --password-stdin --code 123456 < password.txt',
  ],
  async run(context, _args, { name, scopes = USUAL_SCOPES, expires, passwordStdin, code }) {
    const { createClient } = await import('../../client/client.ts');
    const { checkPlace } = await import('../../base/private-file.ts');
    const { readToken, tokenFile, writeToken } = await import('../../client/token.ts');
    const { message, settings, settingSources, io } = context;
    const { home, server_url: url } = settings;
    await checkPlace(tokenFile(home));
    const before = await readToken(home);

    const administrator = name ?? (await ask(context, `Name at ${url}:`, '--name'));
    const password = await readPassword(context, passwordStdin, `Password of ${administrator}:`);
    const server = createClient({ url, warn: message });
    const { token, ...made } = await server.call<typeof createToken>('post', '/identity/tokens', {
      body: {
        administrator,
        password,
        code: code ?? (await ask(context, 'Code of the app, or a recovery code:', '--code')),
        label: `login on ${hostname()}`,
        scopes: [...scopes],
        expires_in_seconds: expires ?? USUAL_SECONDS,
      },
    });
    const stored = { origin: new URL(url).origin, token_id: made.token_id, token };
    try {
      await writeToken(home, stored);
    } catch (error) {
      // The token could not be stored, so it is revoked.
      await endToken(stored, context).catch(() => {});
      throw error;
    }
    if (before !== undefined) await endLoginBefore(before, context);
    if (io.env['SERVICE_LOCAL_TOKEN']) {
      message('SERVICE_LOCAL_TOKEN is set, so commands use its token instead of this login');
    }
    if (settingSources.server_url[0].origin.startsWith('--')) {
      message(`To omit --url from now on, add this line to ${home}/config.yaml:`);
      message(`server_url: ${url}`);
    }
    return {
      data: { server: stored.origin, token: made, file: tokenFile(home) },
      show(out) {
        out.line(`${made.administrator} is logged in to ${stored.origin}`);
        out.line(`for ${made.scopes.join(', ')}, until ${made.expires_at}.`);
      },
    };
  },
});

async function endLoginBefore(
  before: Parameters<typeof endToken>[0],
  context: Context,
): Promise<void> {
  try {
    await endToken(before, context);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { origin, token_id } = before;
    context.message(`could not end the token ${token_id} of the previous login to ${origin}:`);
    context.message(error.message);
  }
}
