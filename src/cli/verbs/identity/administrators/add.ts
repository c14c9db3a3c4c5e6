import {
  enrolledAnswer,
  createFactors,
  withDatabase,
  type OwnDatabase,
} from '../../../administrators.ts';
import { PASSWORD_STDIN_OPTION } from '../../../ask.ts';
import { parseScopes, SCOPES_HELP } from '../../../scopes.ts';
import { defineVerb, type Answer } from '../../../verb.ts';

export const verb = defineVerb({
  summary: "let somebody administer the server; on the server's machine",
  description: `Works on the server's database, so it is for the server's machine: the one of SERVICE_LOCAL_HOME or DATABASE_URL. Asks for a password twice, and for a code of the authenticator app that has scanned the QR code; only then is anything kept.\n\n${SCOPES_HELP}`,
  arguments: { name: { description: 'with which to log in, such as ada or ada@example.org' } },
  options: {
    passwordStdin: PASSWORD_STDIN_OPTION,
    token: {
      value: 'scopes',
      description: 'also make a token with these scopes, such as license,admin; good for 30 days',
      parse: parseScopes,
    },
  },
  examples: [
    'identity administrators add ada --token license,admin',
    'identity administrators add ci-bot --password-stdin --json < password.txt',
  ],
  async run(context, { name }, { passwordStdin, token: scopes }) {
    const { addAdministrator, checkNewName } =
      await import('../../../../identity/administrators.ts');
    const add = async (identity: OwnDatabase): Promise<Answer> => {
      await checkNewName(identity.storage.read, name);
      const factors = await createFactors(context, name, passwordStdin);
      const terms = scopes && { label: 'first', scopes, expires_in_seconds: 30 * 86_400 };
      return enrolledAnswer(await addAdministrator(identity, name, factors, terms), factors);
    };
    return withDatabase(context, add, { mayMake: true });
  },
});
