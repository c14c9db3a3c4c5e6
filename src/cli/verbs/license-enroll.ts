import { hostname } from 'node:os';
import { text } from 'node:stream/consumers';
import { ask } from '../ask.ts';
import { licenseFiles } from '../../license-files.ts';
import { limitLines } from '../leases.ts';
import { goodUntil } from '../license.ts';
import { defineVerb, type Context } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Makes a key pair for this machine, has the server know its public half as a device of the deployment that the code is for, and gets the first lease. When it is interrupted, run it again with the same code. An address given as --url is kept in the user file, unless a setting says another.',
  options: {
    code: {
      value: 'code',
      description: 'from whoever runs the server; asked for when absent, read from stdin when -',
    },
    name: { value: 'text', description: 'what people call this machine', default: hostname() },
  },
  settings: ['server_url'],
  examples: [
    'license enroll --url https://licenses.example',
    'license enroll --url https://licenses.example --code - < code.txt',
    'license enroll --url https://licenses.example --code ABCD-EFGH-JKMN-PQRS-TVWX-YZ23-4567',
  ],
  async run(context, _args, { code, name }) {
    const { settings, io, message } = context;
    const { enrol } = await import('../../client/enrolment.ts');
    const { home, server_url: url } = settings;
    const files = licenseFiles(home, io.env);
    const device = { files, url, clock: Date.now, warn: message };
    const { device_id, claims, isNew, limits } = await enrol(
      device,
      await codeOf(context, code),
      name,
    );
    const { deployment_id, lease_id, entitlements, expires_at, grace_ends_at } = claims;
    await rememberServer(context);
    return {
      data: {
        enrolled: isNew,
        device_id,
        deployment_id,
        lease_id,
        entitlements,
        expires_at,
        grace_ends_at,
        limits,
        files: { key: files.key, lease: files.lease, keyset: files.keyset },
      },
      show(out) {
        out.line(
          isNew
            ? `This is now the device ${device_id} of the deployment ${deployment_id}.`
            : `This was the device ${device_id} of the deployment ${deployment_id} already, with a lease that is good: the code changed nothing.`,
        );
        out.line(`${files.lease} ${goodUntil(claims)}.`);
        for (const line of limitLines(limits)) out.line(`  ${line}`);
        out.line(`It licenses ${entitlements.join(', ') || 'no features'}.`);
      },
    };
  },
});

/** So that what comes after, such as the daemon, finds the server without --url. */
async function rememberServer({ settings, settingSources, message }: Context): Promise<void> {
  const { home, server_url: url } = settings;
  const [{ origin }, otherwise] = settingSources.server_url;
  if (!origin.startsWith('--') || otherwise === undefined || otherwise.value === url) return;
  if (otherwise.origin !== 'default') {
    message(`Without --url, ${otherwise.value} is asked: ${otherwise.origin} says so. Change it.`);
    return;
  }
  const { addToUserFile } = await import('../user-file.ts');
  const file = await addToUserFile(home, 'server_url', url);
  if (file !== undefined) message(`${file} now says server_url: ${url}`);
  else {
    message(`To do without --url from now on, put this line into ${home}/config.yaml:`);
    message(`server_url: ${url}`);
  }
}

/** What is typed after the verb can be seen by other users, and is kept by the shell. */
async function codeOf(context: Context, given: string | undefined): Promise<string> {
  if (given === '-') return (await text(context.io.stdin)).trim();
  return given ?? ask(context, 'Code from whoever runs the server:', '--code');
}
