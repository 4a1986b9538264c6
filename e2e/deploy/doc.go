// Package deploy tries what is in the folder deploy/ on the real things: Kubernetes' own types and kustomize for the manifests,
// Prometheus' own parser for queries and rules, the Prometheus server of the distribution for panels and alerts, and the built
// programs for everything that listens. It is a module of its own because these are heavy; the sidecar links none of them, and
// neither does the module e2e.
//
//	manifests   every combination of components, and the overlay, rendered, decoded strictly, and its pods held against rules
//	compose     the compose file read by its official library, our services and Prometheus started as it says
//	run         the built binary with each manifest's args, env, mounts and user, in a root of its own, its probes fetched
//	queries     every expression parses and names only series and labels that a running sidecar exports
//	panels      live traffic, scraped: no panel is empty, and without one series exactly the queries that name it are
//	alerts      live faults, scraped: each alert fires, and none without its fault
//
// The files without _test are shared with the command accept, which does the same to a container. Everything needs root: user ids,
// folders of a pod and small file systems are made for real. Nothing is skipped; what is missing is a failure that says so.
package deploy
