import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { ask } from '../../ask.ts';
import { licenseFiles } from '../../../gate/license-files.ts';
import type { HeldTrust } from '../../../lease/trust.ts';
import type { SettingKey } from '../../../base/settings.ts';
import { formatLimits } from '../../leases.ts';
import { formatValidity, INSECURE } from '../../license.ts';
import { readNamedFile } from '../../read-named-file.ts';
import { defineVerb, type Context } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'register this machine as a device, and get its first lease',
  description:
    'Makes a key pair for this machine, registers its public half as a device of the installation that the code is for, and gets the first lease. Before it uses the code, it checks the keys of the server: by the fingerprint in the code, by SERVICE_LICENSE_ROOT, by --keyset, or by the keys that this machine holds; without any of these, it trusts the keys that the server publishes, and reports this. If it is interrupted, run it again with the same code. The address in --url and the option --insecure are kept in the user file.',
  options: {
    code: {
      value: 'code',
      description: 'enrollment code from the issuer; prompted for if absent, read from stdin if -',
    },
    name: { value: 'text', description: 'display name of this machine', default: hostname() },
    keyset: {
      value: 'file',
      description:
        'keys to trust: a copy of /.well-known/license-keys.json of the server, or one key as JWK or PEM',
      complete: 'file',
    },
    insecure: INSECURE,
  },
  settings: ['server_url'],
  examples: [
    'license enroll --url https://licenses.example',
    'license enroll --url https://licenses.example --code - < code.txt',
    'license enroll --url https://licenses.example --code ABCD-EFGH-JKMN-PQRS-TVWX-YZ23-4567',
  ],
  async run(context, _args, { code, name, keyset, insecure: allowed }) {
    const { settings, io, cwd, message } = context;
    const { enroll } = await import('../../../client/enrollment.ts');
    const { announceAnchor } = await import('../../../../daemon/announcement.ts');
    const { home, server_url: url } = settings;
    const files = licenseFiles(home, io.env);
    const insecure = allowed || settings.server_insecure;
    const device = { files, url, insecure, clock: Date.now, warn: message };
    const given = await codeOf(context, code);
    const { device_id, claims, isNew, limits, trust, formerTrust } = await enroll(
      device,
      given,
      name,
      {
        keyset: keyset === undefined ? undefined : await readNamedFile(resolve(cwd, keyset)),
        announce: (anchor) => announceAnchor(files.state, anchor),
      },
    );
    const { deployment_id, lease_id, entitlements, expires_at, grace_ends_at } = claims;
    const root = trust.root?.lineage.at(-1) ?? null;
    const key_ids = [...trust.keys.keys()];
    if (trust.basis === 'first_contact') {
      const what = root === null ? `the keys ${key_ids.join(', ')}` : `the root ${root}`;
      message(
        `First contact: nothing vouched for the keys of ${url}. This machine now trusts ${what}.`,
      );
      message(
        `Compare with what ${root === null ? '`identity keys list`' : '`identity root show`'} prints at the issuer.`,
      );
    }
    await remember(context, allowed);
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
        trust: { by: trust.basis, root, key_ids },
        files: { key: files.key, lease: files.lease, keyset: files.keyset, root: files.root },
      },
      show(out) {
        const who = `the device ${device_id} of the installation ${deployment_id}`;
        const change = changeOfTrust(formerTrust, trust);
        if (isNew) out.line(`This machine is now ${who}.`);
        else {
          const rest = change === undefined ? ': the code changed nothing' : ', which it keeps';
          out.line(`This machine already is ${who} and has a valid lease${rest}.`);
        }
        if (change !== undefined) out.line(change);
        out.line(`${files.lease} ${formatValidity(claims)}.`);
        for (const line of formatLimits(limits)) out.line(`  ${line}`);
        out.line(`It licenses ${entitlements.join(', ') || 'no features'}.`);
      },
    };
  },
});

/** Describes a change of the trusted keys; undefined without a change or without former keys. */
function changeOfTrust(before: HeldTrust | undefined, now: HeldTrust): string | undefined {
  if (before === undefined) return undefined;
  const rootOf = ({ root }: HeldTrust): string =>
    root === undefined ? 'no root' : `the root ${root.lineage.at(-1)}`;
  const keysOf = ({ keys }: HeldTrust): string =>
    `the keys ${[...keys.keys()].toSorted().join(', ')}`;
  const changed = [rootOf, keysOf].find((name) => name(before) !== name(now));
  return (
    changed && `This machine now trusts ${changed(now)}; before, it trusted ${changed(before)}.`
  );
}

/** Keeps the address and --insecure for later verbs and the daemon. */
async function remember(context: Context, insecure: boolean): Promise<void> {
  await rememberServer(context);
  if (!insecure || context.settings.server_insecure) return;
  await keepSetting(context, 'server_insecure', 'true', '--insecure');
}

async function rememberServer(context: Context): Promise<void> {
  const { settings, settingSources, message } = context;
  const { server_url: url } = settings;
  const [{ origin }, otherwise] = settingSources.server_url;
  if (!origin.startsWith('--') || otherwise === undefined || otherwise.value === url) return;
  if (otherwise.origin !== 'default') {
    message(
      `Without --url, other commands use ${otherwise.value}, which ${otherwise.origin} sets. Change it there.`,
    );
    return;
  }
  await keepSetting(context, 'server_url', url, '--url');
}

async function keepSetting(
  { settings: { home }, message }: Context,
  key: SettingKey,
  value: string,
  flag: string,
): Promise<void> {
  const { addToUserFile } = await import('../../user-file.ts');
  const file = await addToUserFile(home, key, value);
  if (file !== undefined) message(`${file} now contains ${key}: ${value}`);
  else {
    message(`To omit ${flag} from now on, add this line to ${home}/config.yaml:`);
    message(`${key}: ${value}`);
  }
}

/** Other users can see command-line arguments, and the shell keeps them in its history. */
async function codeOf(context: Context, given: string | undefined): Promise<string> {
  if (given === '-') return (await text(context.io.stdin)).trim();
  return given ?? ask(context, 'Enrollment code from the issuer:', '--code');
}
