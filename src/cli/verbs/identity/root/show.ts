import { createClient } from '../../../../client/client.ts';
import type { TrustDocument } from '../../../../identity/root-documents.ts';
import type { Output } from '../../../output.ts';
import { publishedDocument, readChain, showMissing } from '../../../root.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'show the fingerprint, versions and expiry of a root and its keyset',
  description:
    'Shows a file, or the documents that the server publishes. Signatures are counted but not verified: `license verify`, the daemon and the gate do that, and the server when a document is uploaded.',
  arguments: {
    file: {
      description: 'file with the chain of roots; by default the documents of the server',
      optional: true,
      complete: 'file',
    },
  },
  settings: ['server_url'],
  examples: ['identity root show', 'identity root show license-root.json --json'],
  async run(context, { file }) {
    const { server_url: url } = context.settings;
    const document =
      file === undefined
        ? await publishedDocument(createClient({ url, warn: context.message }))
        : await readChain(context, file);
    const shown = document && (await summaryOf(document));
    return {
      data: { source: file ?? url, root: shown?.root ?? null, keyset: shown?.keyset ?? null },
      show(out) {
        if (shown === undefined) {
          out.line('The server publishes no root: see `service-local identity root init`.');
        } else show(out, shown);
      },
    };
  },
});

type Summary = Awaited<ReturnType<typeof summaryOf>>;

async function summaryOf(document: TrustDocument) {
  const {
    fingerprintOf,
    firstFingerprintOf,
    keysetClaims,
    keysetSignatures,
    rootClaims,
    rootSignatures,
  } = await import('../../../../identity/root-documents.ts');
  const { keys, ...root } = rootClaims(document);
  const keyset = keysetClaims(document);
  return {
    root: {
      fingerprint: fingerprintOf(document),
      first_fingerprint: firstFingerprintOf(document),
      ...root,
      keys: keys.map(({ kid }) => kid),
      signatures: rootSignatures(document),
    },
    keyset: keyset && {
      version: keyset.version,
      issued_at: keyset.issued_at,
      expires_at: keyset.expires_at,
      keys: keyset.keys.map(({ kid }) => kid),
      retired: keyset.retired,
      signatures: keysetSignatures(document),
    },
  };
}

function show(out: Output, { root, keyset }: Summary): void {
  const {
    fingerprint,
    first_fingerprint: first,
    version,
    issuer,
    threshold,
    keys,
    expires_at,
  } = root;
  out.line(`root        ${fingerprint}`);
  if (first !== fingerprint) out.line(`first root  ${first} (pin this one)`);
  out.line(`issuer      ${issuer}`);
  out.line(`version     ${version}, until ${expires_at}`);
  out.line(`threshold   ${threshold} of ${keys.length}: ${keys.join(' ')}`);
  showMissing(out, 'The root', root.signatures);
  if (keyset === undefined) {
    out.line('keyset      none yet');
    return;
  }
  out.line(`keyset      version ${keyset.version}, until ${keyset.expires_at}`);
  for (const id of keyset.keys) out.line(`  key       ${id}`);
  for (const id of keyset.retired) out.line(`  retired   ${id}`);
  showMissing(out, 'The keyset', keyset.signatures);
}
