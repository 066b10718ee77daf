# nix run 'git+file:.?dir=tools/packing/nix' -- compare --scenario quick --runs 1
{
  description = "Congestion control for live audio and video";

  outputs =
    { self, nixpkgs }:
    let
      root = self.sourceInfo;
      about = (builtins.fromTOML (builtins.readFile "${root}/Cargo.toml")).workspace.package;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      package =
        pkgs:
        pkgs.rustPlatform.buildRustPackage {
          pname = "weir";
          inherit (about) version;
          src = root;
          cargoLock.lockFile = "${root}/Cargo.lock";
          cargoBuildFlags = [
            "-p"
            "weir"
          ];
          buildFeatures = [ "dist" ];
          nativeBuildInputs = [
            pkgs.installShellFiles
            pkgs.nasm
          ];
          env.WEIR_COMMIT = self.sourceInfo.shortRev or "";
          # The tests need sockets, browsers and other programs: ./test runs them.
          doCheck = false;
          postInstall = ''
            installShellCompletion --cmd weir \
              --bash <($out/bin/weir completions bash) \
              --zsh <($out/bin/weir completions zsh) \
              --fish <($out/bin/weir completions fish)
            $out/bin/weir manual --out $TMPDIR/manual
            installManPage $TMPDIR/manual/*
          '';
          meta = {
            description = "Congestion control for live audio and video";
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            mainProgram = "weir";
          };
        };
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = package nixpkgs.legacyPackages.${system};
      });
    };
}
