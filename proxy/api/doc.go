// Package api serves a store over HTTP: to a scorer that must not begin before the last turn of a rollout is on disk, to a trainer that wants its
// tokens, to whoever watches rollouts grow. It is mounted on the admin port; who may ask is for its caller to say.
//
//	GET    /api/rollouts                        the ids, a line each; ?after=ID&limit=N
//	GET    /api/aggregates                      sums of each rollout and of all
//	GET    /api/rollouts/{id}                   one rollout: its state, the derived record of each call, their sums
//	GET    /api/rollouts/{id}/aggregates        the same without the calls
//	GET    /api/rollouts/{id}/calls/{n}         the n-th record, from 0, byte for byte
//	GET    /api/rollouts/{id}/tail              records as they come, as server-sent events; ?after=CURSOR or Last-Event-ID
//	GET    /api/rollouts/{id}/tokens            token ids, prompts whole
//	POST   /api/rollouts/{id}/tokens/freeze     the same, frozen: no call is captured any more
//	DELETE /api/rollouts/{id}/tokens            retires a frozen snapshot; ?snapshot_id=…&version=…
//	POST   /api/rollouts/{id}/seal              later calls are refused with 409, in every process on the store
//	DELETE /api/rollouts/{id}                   clear
//
// With ?wait=complete an answer about a rollout begins when nothing of it is in flight in any process on the store, and seal returns then;
// &timeout=30s bounds that wait (504). Answers are JSON, errors {"error":{"code":…,"message":…}}. Nothing is held in memory that grows with a
// rollout: answers are written while the store is read, and one that fails inside is cut.
package api
