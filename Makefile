# Every target does the set-up that it needs. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help setup up test lint fmt bench conformance fuzz soak

# Where set-up puts what it brings; tests, conformance and bench look there.
export WINDLASS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/windlass

# Arguments for the program behind `up`, `bench`, `conformance` and `soak`: make conformance ARGS='--seed 7'
ARGS ?=

# What only root can do is left out, with a message, where somebody else asks for it.
root = $(filter 0,$(shell id -u))

# The operators that there are, by the names of their packages.
operators = $(patsubst operators/%/Cargo.toml,%-operator,$(wildcard operators/*/Cargo.toml))

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Bring Go (where missing), kubectl 1.36 and what pods are made of into ~/.cache/windlass: minutes once, then nothing
	@tools/setup

up: ## Run a cluster with the samples and all operators, until Ctrl-C (make up ARGS='--nodes 3 --fresh')
	@tools/setup rust kubectl network nginx etcd-3.7
	cargo build --profile up -p windlass-cli $(operators:%=-p %)
	@exec "$${CARGO_TARGET_DIR:-target}/up/windlass" up --operators all --apply samples/ samples/operators/ $(ARGS)

test: ## Run all tests of the workspace
	@tools/setup rust kubectl network nginx postgres etcd-3.6 etcd-3.7
	WINDLASS_PROGRAMS_BUILT=yes cargo test --workspace

# Rust that is no part of the workspace.
beside = fuzz conformance/kube-rs/controllers

lint: ## Check formatting, clippy, documentation, licences and sources of dependencies
	@tools/setup rust go cargo-deny
	cargo fmt --all --check
	$(foreach folder,$(beside),cargo fmt --manifest-path $(folder)/Cargo.toml --check &&) true
	@unlike=$$(PATH="$$PATH:$(WINDLASS_CACHE)/go/bin" gofmt -l conformance tools) && [ -z "$$unlike" ] || { echo "not as gofmt writes it: $$unlike"; exit 1; }
	cargo clippy --workspace --all-targets -- -D warnings
	cargo check --locked --manifest-path fuzz/Cargo.toml
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
	"$$(tools/setup --path cargo-deny)" --locked check bans licenses sources

fmt: ## Format all code
	@tools/setup rust go
	cargo fmt --all
	$(foreach folder,$(beside),cargo fmt --manifest-path $(folder)/Cargo.toml &&) true
	PATH="$$PATH:$(WINDLASS_CACHE)/go/bin" gofmt -w conformance tools

bench: ## Measure beside the real kube-apiserver and etcd, in the same run
	@tools/setup rust network kubectl kube-apiserver etcd-3.6 etcd-3.7
	cargo build --release -p windlass-cli -p windlass-bench -p foobar-operator -p etcd-operator
	"$${CARGO_TARGET_DIR:-target}/release/windlass-bench" $(ARGS)

conformance: ## The same requests, operators and controllers, beside the real kube-apiserver and kube-controller-manager 1.36; pods beside kubelet; our node on the real kube-apiserver; the client of etcd on 3.5, 3.6 and 3.7; as root, the etcd operator on a real node (ARGS=operators: only these)
	@tools/setup rust go network nginx kube-apiserver kube-controller-manager kube-scheduler etcd-3.5 etcd-3.6 etcd-3.7 kubectl kubectl-1.32 helm-3 helm-4 $(if $(root),kube-proxy kubelet coredns)
	cargo build --release -p windlass-cli -p windlass-conformance -p foobar-operator -p etcd-operator -p etcd-ledger -p etcd-e2e
	conformance/run $(ARGS)

fuzz: ## Feed the server's readers what no client would send, ten minutes each (make fuzz SECONDS_EACH=60 TARGETS='yaml cel')
	@tools/setup rust cargo-fuzz
	SECONDS_EACH=$(or $(SECONDS_EACH),600) fuzz/run $(TARGETS)

soak: ## The long run, about four hours: 1,000 × kill -9 of the server and 50 × of a cluster, under writes with a ledger; 20 × every fault of an etcd cluster, its operator killed on the way; then all of `make fuzz` (ARGS='--kills 50')
	@tools/setup rust cargo-fuzz network kubectl etcd-3.7
	cargo build --release -p windlass-cli -p windlass-soak -p etcd-operator -p etcd-ledger -p etcd-e2e
	"$${CARGO_TARGET_DIR:-target}/release/windlass-soak" $(ARGS)
	$(if $(ARGS),,"$${CARGO_TARGET_DIR:-target}/release/windlass-soak" --cluster --kills 50)
	$(if $(ARGS),,"$${CARGO_TARGET_DIR:-target}/release/etcd-e2e" faults --rounds 20 --lanes 3 --report docs/etcd-soak.md)
	$(if $(ARGS),,"$${CARGO_TARGET_DIR:-target}/release/etcd-e2e" killed)
	$(MAKE) fuzz
