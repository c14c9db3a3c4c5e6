import type { listKeys } from '../../../../api/keys.ts';
import { ServiceError } from '../../../../base/errors.ts';
import type { KeysetClaims } from '../../../../lease/root.ts';
import type { TrustDocument } from '../../../../identity/root-documents.ts';
import type { Signer } from '../../../../identity/signing-key.ts';
import { ask } from '../../../ask.ts';
import { connect } from '../../../connect.ts';
import type { ListedKey } from '../../../root-keyset.ts';
import {
  CHAIN_OPTION,
  KEY_OPTION,
  parseLifetime,
  publishedDocument,
  publishedKeyset,
  readChain,
  readSigners,
  requireKnownKeys,
  showMissing,
  uploadTrust,
  writeChain,
} from '../../../root.ts';
import { CODE_OPTION } from '../../../step-up.ts';
import { defineVerb, type Context } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'sign the keys that verify leases with root keys, and upload them',
  description:
    'The keys are those of the server, or of a file: the output of `identity keys list --json`, for a machine without a network. Where several keys must sign, pass the file to the next holder, who runs it with --continue. Without --key nothing is signed: use this to upload a file that was signed elsewhere. Fetching keys and uploading need a token with the scope admin.',
  options: {
    chain: CHAIN_OPTION,
    key: KEY_OPTION,
    keysFrom: {
      value: 'file',
      description: 'output of `identity keys list --json`, instead of asking the server',
      complete: 'file',
    },
    add: {
      value: 'key',
      description: 'public key of the next signing key, as `identity keys generate` prints it',
      repeat: true,
    },
    retire: { value: 'id', description: 'key to withdraw permanently', repeat: true },
    expiresIn: {
      value: 'time',
      description: 'how long the keyset may add keys; 365d by default',
      parse: parseLifetime,
    },
    continue: { description: 'add signatures to the keyset in the file, and change nothing else' },
    upload: { description: 'store the document at the server' },
    replace: { description: 'with --upload: replace the root of the server by this one' },
    code: CODE_OPTION,
    yes: { description: 'sign new keys without asking' },
  },
  settings: ['server_url'],
  examples: [
    'identity root sign-keyset --chain license-root.json --key root-key-1.pem --upload',
    'identity root sign-keyset --chain license-root.json --key root-key-1.pem --keys-from keys.json',
    'identity root sign-keyset --chain license-root.json --key root-key-2.pem --continue',
    'identity root sign-keyset --chain license-root.json --upload',
  ],
  async run(context, _args, options) {
    const { isComplete, keysetClaims, keysetSignatures } =
      await import('../../../../identity/root-documents.ts');
    const { chain } = options;
    const before = await readChain(context, chain);
    const signers = await readSigners(context, options.key);
    const document =
      signers.length === 0 ? before : await signed(context, before, signers, options);
    const claims = keysetClaims(document);
    if (signers.length === 0 && !options.upload) throw nothingToDo();
    if (claims === undefined) throw nothingToUpload();
    const signatures = keysetSignatures(document);
    const complete = isComplete(signatures);
    const stored =
      options.upload && complete ? await uploadTrust(context, document, options) : null;
    // A keyset that the server rejects must not become the base of the next one.
    if (signers.length > 0) await writeChain(context, chain, document);
    const { version, expires_at, keys, retired } = claims;
    return {
      data: {
        file: chain,
        version,
        expires_at,
        keys: keys.map(({ kid }) => kid),
        retired,
        signatures,
        complete,
        stored,
      },
      show(out) {
        out.line(`${chain}: keyset version ${version}, until ${expires_at}.`);
        showMissing(out, 'The keyset', signatures);
        if (!complete) {
          out.line(
            `Pass ${chain} to the next key holder: service-local identity root sign-keyset --chain ${chain} --key KEY --continue`,
          );
        } else if (stored === null) {
          out.line(`Store it: service-local identity root sign-keyset --chain ${chain} --upload`);
        } else {
          out.line(`Stored: the server publishes the root ${stored.root_fingerprint}.`);
          if (stored.activated !== null) out.line(`${stored.activated} signs from now on.`);
        }
      },
      failure:
        options.upload && !complete
          ? new ServiceError('conflict', 'not uploaded: signatures are missing', {
              reason: 'not_vouched_for',
              remedy: 'Have the other key holders sign with --continue, and upload then.',
            })
          : undefined,
    };
  },
});

const STRANGER = 'neither a root key nor a key of the keyset';

interface SignOptions {
  readonly keysFrom: string | undefined;
  readonly add: readonly string[];
  readonly retire: readonly string[];
  readonly expiresIn: number | undefined;
  readonly continue: boolean;
  readonly replace: boolean;
  readonly yes: boolean;
}

async function signed(
  context: Context,
  before: TrustDocument,
  signers: readonly Signer[],
  options: SignOptions,
): Promise<TrustDocument> {
  const { addSignatures, fingerprintOf, keysetClaims, lifetime, rootClaims, signKeyset } =
    await import('../../../../identity/root-documents.ts');
  const root = rootClaims(before);
  const held = keysetClaims(before);
  if (options.continue) {
    if (before.keyset === undefined || held === undefined) throw nothingToContinue();
    requireKnownKeys(signers, [...root.keys, ...held.keys], STRANGER);
    context.message(
      `signs version ${held.version} with ${held.keys.map(({ kid }) => kid).join(' ')}`,
    );
    return { roots: before.roots, keyset: addSignatures(before.keyset, signers) };
  }
  const { buildKeyset, readKeyList } = await import('../../../root-keyset.ts');
  const listed =
    options.keysFrom === undefined
      ? await askServer(context, before, options)
      : { keys: readKeyList(context, options.keysFrom), served: undefined };
  const former = [held, listed.served].reduce(
    (newest, one) => (one && one.version > (newest?.version ?? 0) ? one : newest),
    undefined,
  );
  const { keys, retired } = buildKeyset(former, listed.keys, options);
  const claims: KeysetClaims = {
    version: (former?.version ?? 0) + 1,
    issuer: root.issuer,
    ...lifetime(Date.now(), options.expiresIn ?? 365 * 86_400),
    root: fingerprintOf(before),
    keys,
    retired,
  };
  requireKnownKeys(signers, [...root.keys, ...keys], STRANGER);
  await confirmKeys(context, former, claims, options.yes);
  return { roots: before.roots, keyset: signKeyset(claims, signers) };
}

async function askServer(
  context: Context,
  own: TrustDocument,
  { replace }: SignOptions,
): Promise<{ readonly keys: readonly ListedKey[]; readonly served: KeysetClaims | undefined }> {
  const { firstFingerprintOf, rootClaims } = await import('../../../../identity/root-documents.ts');
  const server = await connect(context);
  const { items } = await server.call<typeof listKeys>('get', '/identity/keys', {});
  const document = await publishedDocument(server);
  // A different first root is not a newer one: the upload refuses it, or replaces the server's root.
  const isSameRoot = document && firstFingerprintOf(document) === firstFingerprintOf(own);
  if (isSameRoot && !replace && rootClaims(document).version > rootClaims(own).version) {
    throw new ServiceError('conflict', 'the server has a newer root than the file', {
      remedy:
        'Take the chain from /.well-known/license-keys.json of the server, or the newest file.',
    });
  }
  return { keys: items, served: await publishedKeyset(server) };
}

/** The server names the keys; only a person can say that they are the ones to trust. */
async function confirmKeys(
  context: Context,
  former: KeysetClaims | undefined,
  next: KeysetClaims,
  yes: boolean,
): Promise<void> {
  const { diffKeysets } = await import('../../../root-keyset.ts');
  const { added, removed } = diffKeysets(former, next);
  for (const id of added) context.message(`adds the key ${id}`);
  for (const id of removed) context.message(`withdraws the key ${id}`);
  if (added.length === 0 || yes) return;
  const question = `Are these the keys of your servers? Every machine will trust them. Type yes to sign version ${next.version}:`;
  const typed = await ask(context, question, '--yes');
  if (typed === 'yes') return;
  throw new ServiceError('confirmation_mismatch', `'${typed}' is not yes`, {
    remedy: 'Nothing was signed. Compare the ids with `service-local identity keys list`.',
  });
}

function nothingToDo(): ServiceError {
  return new ServiceError('usage', 'specify --key or --upload', {
    remedy: 'Pass the file of a root key with --key, or upload a signed file with --upload.',
  });
}

function nothingToUpload(): ServiceError {
  return new ServiceError('usage', 'the file has no signed keyset to upload', {
    remedy: 'Sign a keyset first, with --key and the file of a root key.',
  });
}

function nothingToContinue(): ServiceError {
  return new ServiceError('usage', 'the file has no keyset to sign with --continue', {
    remedy: 'Create and sign the first keyset: run the same command without --continue.',
  });
}
