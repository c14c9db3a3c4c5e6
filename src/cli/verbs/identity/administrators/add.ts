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
  summary: "add an administrator; run on the server's machine",
  description: `Writes to the database in SERVICE_LOCAL_HOME or DATABASE_URL, so run it on the server's machine. Asks twice for a password, shows a QR code for an authenticator app, and stores the administrator after you enter a code of the app. With --password-stdin, stores the administrator without asking, and prints the key for the app.\n\n${SCOPES_HELP}`,
  arguments: { name: { description: 'login name, such as ada or ada@example.org' } },
  options: {
    passwordStdin: PASSWORD_STDIN_OPTION,
    token: {
      value: 'scopes',
      description:
        'also create a token with these scopes, such as license,admin; it expires after 30 days',
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
