import { ServiceError } from '../../../../base/errors.ts';
import type { TrustDocument } from '../../../../identity/root-documents.ts';
import type { Signer } from '../../../../identity/signing-key.ts';
import {
  CHAIN_OPTION,
  directoryOf,
  KEY_OPTION,
  makeRootKeys,
  MAX_ROOT_KEYS,
  parseKeyCount,
  parseLifetime,
  readChain,
  readSigners,
  requireKnownKeys,
  showMissing,
  writeChain,
} from '../../../root.ts';
import { defineVerb, type Context } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'create the next root, signed by the current root and by its own keys',
  description:
    'Works without a server and a network. Enough keys of the current root and of the next root must sign, so that every machine that trusts the current root accepts the next one. With --new-keys, new keys replace all former keys except those in --keep, and are written next to the chain. Otherwise only the expiry or the threshold changes. If more key holders must sign, pass the file on; they run the command with --continue. Then sign the keyset with the new root and upload both.',
  options: {
    chain: CHAIN_OPTION,
    key: { ...KEY_OPTION, description: 'a key of the current or the next root; repeat it' },
    newKeys: { value: 'count', description: 'number of new keys to create', parse: parseKeyCount },
    keep: { value: 'id', description: 'with --new-keys: a key to keep', repeat: true },
    threshold: {
      value: 'count',
      description: 'number of keys that must sign from then on; unchanged by default',
      parse: parseKeyCount,
    },
    expiresIn: {
      value: 'time',
      description: 'how long the root is valid; 1825d by default',
      parse: parseLifetime,
    },
    continue: { description: 'add signatures to the newest root in the file' },
  },
  examples: [
    'identity root rotate --chain license-root.json --key root-key-1.pem --new-keys 1',
    'identity root rotate --chain license-root.json --key root-key-1.pem --expires-in 1825d',
    'identity root rotate --chain license-root.json --key root-key-2.pem --continue',
  ],
  async run(context, _args, options) {
    const {
      addSignatures,
      fingerprintOf,
      formerRootClaims,
      isComplete,
      rootClaims,
      rootSignatures,
    } = await import('../../../../identity/root-documents.ts');
    const { chain } = options;
    const before = await readChain(context, chain);
    const signers = await readSigners(context, options.key);
    if (signers.length === 0) {
      throw new ServiceError('usage', '--key is missing: a key of the current root must sign');
    }
    const former = options.continue ? formerRootClaims(before) : undefined;
    const allowed = [...rootClaims(before).keys, ...(former?.keys ?? [])];
    requireKnownKeys(
      signers,
      allowed,
      options.continue
        ? 'not a key of the newest root in the file, or of the one before'
        : 'not a key of the current root',
    );
    const { document, made } = options.continue
      ? {
          made: [],
          document: {
            ...before,
            roots: [...before.roots.slice(0, -1), addSignatures(before.roots.at(-1)!, signers)],
          },
        }
      : await nextRoot(context, before, signers, options);
    await writeChain(context, chain, document);
    const { version, threshold, expires_at } = rootClaims(document);
    const fingerprint = fingerprintOf(document);
    const signatures = rootSignatures(document);
    const complete = isComplete(signatures);
    return {
      data: {
        file: chain,
        fingerprint,
        version,
        threshold,
        expires_at,
        keys: made,
        signatures,
        complete,
      },
      show(out) {
        out.line(`${chain}: root version ${version}, ${fingerprint}, until ${expires_at}.`);
        for (const { path, public_key_id } of made) out.line(`  ${path}: ${public_key_id}`);
        showMissing(out, 'The root', signatures);
        out.line(
          complete
            ? `Sign the keyset with it: service-local identity root sign-keyset --chain ${chain} --key KEY --upload`
            : `Pass ${chain} to the next key holder: service-local identity root rotate --chain ${chain} --key KEY --continue`,
        );
      },
    };
  },
});

interface RotateOptions {
  readonly chain: string;
  readonly newKeys: number | undefined;
  readonly keep: readonly string[];
  readonly threshold: number | undefined;
  readonly expiresIn: number | undefined;
}

async function nextRoot(
  context: Context,
  before: TrustDocument,
  signers: readonly Signer[],
  { chain, newKeys, keep, threshold, expiresIn = 1825 * 86_400 }: RotateOptions,
): Promise<{
  readonly document: TrustDocument;
  readonly made: readonly { readonly path: string; readonly public_key_id: string }[];
}> {
  const { isComplete, lifetime, publicKeyOf, rootClaims, rootSignatures, signRoot } =
    await import('../../../../identity/root-documents.ts');
  if (!isComplete(rootSignatures(before))) {
    throw new ServiceError('conflict', 'the newest root in the file lacks signatures', {
      remedy: 'Complete it with --continue first.',
    });
  }
  const former = rootClaims(before);
  const stranger = keep.find((id) => !former.keys.some(({ kid }) => kid === id));
  if (stranger !== undefined) {
    throw new ServiceError('usage', `--keep ${stranger} is not a key of the current root`);
  }
  const kept =
    newKeys === undefined ? former.keys : former.keys.filter(({ kid }) => keep.includes(kid));
  const wanted = threshold ?? former.threshold;
  const count = kept.length + (newKeys ?? 0);
  if (wanted > count) {
    throw new ServiceError('usage', `the threshold ${wanted} is more than the ${count} keys`, {
      remedy: 'Specify --threshold, keep more keys with --keep, or create more with --new-keys.',
    });
  }
  if (count > MAX_ROOT_KEYS) {
    throw new ServiceError('usage', `a root has at most ${MAX_ROOT_KEYS} keys, not ${count}`);
  }
  const version = former.version + 1;
  const names = Array.from({ length: newKeys ?? 0 }, (_, i) => `root-key-v${version}-${i + 1}.pem`);
  const made = await makeRootKeys(directoryOf(context, chain), names);
  const own = made.map(({ signer }) => signer);
  const claims = {
    version,
    issuer: former.issuer,
    ...lifetime(Date.now(), expiresIn),
    threshold: wanted,
    keys: [...kept, ...own.map(publicKeyOf)],
  };
  const root = signRoot(claims, [...signers, ...own]);
  return {
    document: { ...before, roots: [...before.roots, root] },
    made: made.map(({ path, signer }) => ({ path, public_key_id: signer.publicKeyId })),
  };
}
