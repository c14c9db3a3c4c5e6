import * as api from '../api/knowledge.ts';
import { formatInstant } from '../api/http.ts';
import { ServiceError } from '../base/errors.ts';
import { licenseInvalid } from '../gate/decide.ts';
import { withNames } from '../identity/actor-names.ts';
import {
  clearPassages,
  getDocument,
  listDocuments,
  publishDocument,
  removeDocument,
  stageDocument,
  type DocumentHead,
  type Knowledge,
  type Published,
} from '../research/knowledge/documents.ts';
import { interleave, type InstanceAnswer } from '../research/knowledge/federation.ts';
import { searchPassages } from '../research/knowledge/search.ts';
import { LICENSE_STATUS_HEADER } from '../lease/license-features.ts';
import { actorOf } from './authentication.ts';
import { createOnce } from './idempotency.ts';
import type { App, Services } from './services.ts';

export function addKnowledge(app: App, { identity, gate, federation, log }: Services): void {
  const knowledge: Knowledge = identity;
  const { storage } = knowledge;
  const named = async (heads: readonly DocumentHead[]): Promise<api.Document[]> => {
    const all = await withNames(storage.read, heads, 'added_by');
    return all.map((one) => ({ ...one, added_at: formatInstant(one.added_at) }));
  };
  /** Runs before the response, so that later searches find no old passages; `purge` retries failures. */
  const clear = async (document_id: string): Promise<void> => {
    await clearPassages(knowledge, document_id).catch((error: unknown) => {
      log.warn({ err: error, msg: `passages of document ${document_id} could not be removed yet` });
    });
  };

  app.openapi(api.addDocument, async (c) => {
    const staged = await stageDocument(knowledge, c.req.valid('json'));
    let replaced: string | null = null;
    const publish = async (service: Knowledge): Promise<Published> => {
      const published = await publishDocument(service, actorOf(c), staged);
      replaced = published.replaced;
      return published;
    };
    try {
      const document = await createOnce(c, knowledge, publish, (published) => published.document);
      return c.json((await named([document]))[0]!, 201);
    } finally {
      await clear(staged.document_id);
      if (replaced !== null) await clear(replaced);
    }
  });
  app.openapi(api.listDocuments, async (c) => {
    const { name, ...request } = c.req.valid('query');
    const { items, next_cursor } = await listDocuments(storage.read, { name }, request);
    return c.json({ items: await named(items), next_cursor }, 200);
  });
  app.openapi(api.getDocument, async (c) => {
    const { document_id } = c.req.valid('param');
    const { text, ...head } = await getDocument(storage.read, document_id);
    return c.json({ ...(await named([head]))[0]!, text }, 200);
  });
  app.openapi(api.removeDocument, async (c) => {
    const { document_id } = c.req.valid('param');
    await removeDocument(knowledge, actorOf(c), document_id);
    await clear(document_id);
    return c.body(null, 204);
  });
  app.openapi(api.searchKnowledge, async (c) => {
    const { q, limit, federated } = c.req.valid('query');
    if (federated === 'true') {
      const decision = gate.check('kb_federation');
      if (!decision.allowed) throw licenseInvalid('kb_federation', decision);
      if (decision.status === 'grace') c.header(LICENSE_STATUS_HEADER, 'grace');
      if (federation.isEmpty) throw noInstance();
    }
    const [found, answered] = await Promise.all([
      searchPassages(storage, q, limit),
      federated === 'true' ? federation.search(q, limit) : [],
    ]);
    const own = found.map((one) => ({ ...one, instance: null }));
    const items = interleave([own, ...answered.map((one) => one.items)], limit);
    return c.json({ items, instances: answered.map(serializeInstance) }, 200);
  });
}

function serializeInstance({ name, status, reason, took_ms }: InstanceAnswer) {
  return { name, status, reason, took_ms };
}

function noInstance(): ServiceError {
  return new ServiceError('conflict', 'no other instance is configured for a federated search', {
    reason: 'no_instance',
    remedy:
      'Add one, such as `instances: [{name: tokyo, url: "https://tokyo.example", token_env: TOKYO_TOKEN}]`, to the file that `service-local config explain knowledge_file` names on the server, and restart the server.',
  });
}
