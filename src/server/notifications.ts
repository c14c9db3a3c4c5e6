import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import * as api from '../api/notifications.ts';
import { listChannels } from '../fleet/notifications/channels.ts';
import {
  countDeliveries,
  listDeliveries,
  type Delivery,
} from '../fleet/notifications/deliveries.ts';
import {
  addRule,
  listRules,
  removeRule,
  type NotificationRule,
} from '../fleet/notifications/rules.ts';
import { withSlugs } from '../fleet/registry/bot-slugs.ts';
import { withNames } from '../identity/actor-names.ts';
import { actorOf } from './authentication.ts';
import { createOnce } from './idempotency.ts';
import { serializePage } from './serialize-page.ts';
import type { App, Services } from './services.ts';

export function addNotifications(app: App, { identity, notifier }: Services): void {
  const { read } = identity.storage;
  const { channels } = notifier;

  /** Runs the same number of queries for any number of rules. */
  const serializeRules = async (rules: readonly NotificationRule[]): Promise<api.Rule[]> => {
    const named = await withNames(read, rules, 'created_by');
    const ids = new Set(rules.flatMap(({ bot_ids }) => bot_ids ?? []));
    const bots = await withSlugs(
      read,
      [...ids].map((bot_id) => ({ bot_id })),
    );
    const slugs = new Map(bots.map(({ bot_id, bot_slug }) => [bot_id, bot_slug]));
    return named.map(({ bot_ids, created_at, ...rule }) => ({
      ...rule,
      bots: bot_ids && bot_ids.map((id) => ({ id, slug: slugs.get(id) ?? null })),
      created_at: formatInstant(created_at),
    }));
  };

  app.openapi(api.listNotificationRules, async (c) => {
    const rules = await serializeRules(await listRules(read));
    const known = listChannels(channels, rules);
    const { pending, failed } = await countDeliveries(read, identity.clock());
    return c.json({ channels: known, rules, pending, failed }, 200);
  });
  app.openapi(api.addNotificationRule, async (c) => {
    const added = await createOnce(
      c,
      identity,
      (service) => addRule(service, actorOf(c), channels, c.req.valid('json')),
      (rule) => rule,
    );
    const [rule] = await serializeRules([added]);
    const channel = listChannels(channels, [added]).find(({ name }) => name === added.channel);
    return c.json({ ...rule!, channel_fault: channel!.fault }, 201);
  });
  app.openapi(api.removeNotificationRule, async (c) => {
    await removeRule(identity, actorOf(c), c.req.valid('param').name);
    return c.body(null, 204);
  });
  app.openapi(api.testNotificationChannel, async (c) => {
    const { channel } = c.req.valid('param');
    const { delivery, refusedStatus } = await notifier.test(actorOf(c), channel);
    return c.json({ ...serializeDelivery(delivery), refused_status: refusedStatus }, 200);
  });
  app.openapi(api.listNotificationDeliveries, async (c) => {
    const { status, ...request } = c.req.valid('query');
    const found = await listDeliveries(read, { status }, request);
    return c.json(serializePage(found, serializeDelivery), 200);
  });
}

function serializeDelivery(delivery: Delivery): api.Delivery {
  const { delivery_id, rule_name, channel, notice, status, attempts, error } = delivery;
  return {
    delivery_id,
    rule: rule_name,
    channel,
    summary: notice.data.summary,
    status,
    attempts,
    error,
    created_at: formatInstant(delivery.created_at),
    ended_at: formatInstantOrNull(delivery.ended_at),
  };
}
